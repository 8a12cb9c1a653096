"""Answers of the kubelet that list the same in another order, or nearly the same. No I/O."""

import random

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_names import GpuResources
from exporter.node.attribution.kubelet.listed_allocations import listed_allocations
from exporter.node.attribution.kubelet.reason import MAX_ALLOCATIONS
from exporter.node.attribution.kubelet.repeated_answer import AnswerDecoder
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ClaimResource,
    ContainerDevices,
    ContainerResources,
    DynamicResource,
    ListPodResourcesResponse,
    PodResources,
)
from exporter.source import SourceError
from tests.exporter.node.attribution.node_devices import GPU

GPUS = GpuResources()


def answer(*rows):
    """An answer with these (pod, container, resource, id), in this order."""
    response = ListPodResourcesResponse()
    for pod, container, resource, device_id in rows:
        entry = ContainerResources(name=container)
        if resource == "gpu.nvidia.com":
            device = ClaimResource(driver_name=resource, pool_name="node", device_name=device_id)
            entry.dynamic_resources.append(DynamicResource(claim_resources=[device]).SerializeToString())
        else:
            entry.devices.append(ContainerDevices(resource_name=resource, device_ids=[device_id]).SerializeToString())
        response.pod_resources.append(PodResources(name=pod, namespace="team", containers=[entry]))
    return response


ROWS = [(f"pod-{n % 5}", "main", GPU, f"GPU-{n}") for n in range(40)]


def test_an_answer_that_lists_the_same_in_another_order_gives_the_same_allocations_again():
    decoder = AnswerDecoder(GPUS)
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    first = decoder.decode(answer(*ROWS))
    assert len(first) == len(ROWS)
    assert decoder.decode(answer(*shuffled, *shuffled[:3])) is first  # a device near two NUMA nodes is listed twice


ROW = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from(["main", "side"]),
    st.sampled_from([GPU, "gpu.nvidia.com", "example.com/fuse"]),
    st.sampled_from(["GPU-0", "GPU-1"]),
)


@given(st.lists(st.lists(ROW, max_size=4), min_size=1, max_size=6))
def test_whatever_was_listed_before_an_answer_gives_what_it_lists(answers):
    decoder = AnswerDecoder(GPUS)
    for rows in answers:
        assert decoder.decode(answer(*rows)) == listed_allocations(answer(*rows), GPUS)


def test_an_answer_that_cannot_be_decoded_is_an_error_each_time_and_costs_no_other():
    decoder, broken = AnswerDecoder(GPUS), answer(*ROWS)
    broken.pod_resources.add(name="bad").containers.add(name="main", devices=[b"\xff"])
    before = decoder.decode(answer(*ROWS))
    for _ in range(2):
        with pytest.raises(DecodeError):
            decoder.decode(broken)
    assert decoder.decode(answer(*ROWS)) == before


def test_too_many_allocations_are_an_error_each_time():
    decoder = AnswerDecoder(GPUS)
    entry = ContainerDevices(resource_name=GPU, device_ids=[f"GPU-{n}" for n in range(MAX_ALLOCATIONS + 1)])
    large = ListPodResourcesResponse()
    large.pod_resources.add(name="train").containers.add(name="main", devices=[entry.SerializeToString()])
    for _ in range(2):
        with pytest.raises(SourceError):
            decoder.decode(large)


def test_an_answer_with_more_entries_than_are_remembered_is_decoded_each_time():
    decoder = AnswerDecoder(GPUS)
    entry = ContainerDevices(resource_name="example.com/fuse", device_ids=["fuse"]).SerializeToString()
    large = answer(*ROWS)
    large.pod_resources.add(name="web").containers.add(name="main", devices=[entry] * MAX_ALLOCATIONS)
    first, second = decoder.decode(large), decoder.decode(large)
    assert first == second == listed_allocations(large, GPUS)
    assert first is not second
