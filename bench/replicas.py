"""Measures the CPU of a collection where many pods share MIG devices through replicas: the kubelet lists thousands."""

import time

import grpc

from bench.cpu import cost_of
from bench.fixture import BenchNode, RunningFakes
from bench.stages import RULES, whole
from bench.table import BenchSection, Figure
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet.repeated_answer import AnswerDecoder
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesRequest, ListPodResourcesResponse
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub

BUDGET_MS = 10.0


def replica_section(node: BenchNode, fakes: RunningFakes, repetitions: int) -> BenchSection:
    """Measure a List with its decoding, and whole collections."""
    kubelet = Kubelet(fakes.socket)
    listed = len(kubelet.read())
    same = cost_of(kubelet.read, repetitions, time.process_time_ns)
    kubelet.close()
    answer = _answer(fakes)
    changed = cost_of(lambda: AnswerDecoder(RULES.gpus).decode(answer), repetitions)
    total = whole(node.counters(), fakes, repetitions).total
    rows = [
        Figure("kubelet List and what is done with it, pods as before", same.least, "ms", note=same.note),
        Figure("the decoding after a pod came or went", changed.least, "ms", note=changed.note),
        Figure("whole collection, both processes", total.least, "ms", BUDGET_MS, total.note),
    ]
    remark = f"{listed:,} allocations, {answer.ByteSize():,} bytes. Least CPU time of {repetitions} runs, all threads."
    return BenchSection(f"Replicas: {node.name}", rows, [remark])


def _answer(fakes: RunningFakes) -> ListPodResourcesResponse:
    with grpc.insecure_channel(f"unix:{fakes.socket}") as channel:
        stub = PodResourcesListerStub(channel)  # type: ignore[no-untyped-call] # generated
        answer: ListPodResourcesResponse = stub.List(ListPodResourcesRequest(), timeout=5)
        return answer
