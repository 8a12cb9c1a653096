"""Pods and nodes that several tests of pending reasons share."""

from dataclasses import replace

from exporter.cluster.scheduling.nodes.device_claims import DeviceObjects
from exporter.cluster.scheduling.nodes.free_capacity import node_groups, requested
from exporter.cluster.scheduling.reasons.cluster_state import ClusterState
from exporter.cluster.scheduling.reasons.verdict import pending_reason
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, node, pod

GPU = "nvidia.com/gpu"


H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)


A100 = objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 8)


TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}


POD = objects.pod("p", requests={GPU: 4}, created=NOW - 1000)


SELECTOR_AND_GPU = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
)


TAINT_AND_GPU = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu."


FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def reason_of(given, nodes=None, others=(), **known):
    """The pending reason, with these nodes and the other pods that run on them."""
    one = pod(given)
    state = replace(ClusterState(GPUS, now=NOW), **known)
    if nodes is None:
        return pending_reason(one, state)
    records = [node(each) for each in nodes]
    groups = node_groups(records, requested([pod(each) for each in others]), [one], DeviceObjects())
    names = frozenset(each.name for each in records)
    return pending_reason(one, replace(state, groups=groups, single_nodes=groups, node_names=names))


def unschedulable(message, given=POD):
    return objects.unschedulable(given, message, NOW - 900)


def selecting(given, **labels):
    return {**given, "spec": {**given["spec"], "nodeSelector": labels}}


def tolerating(given, *tolerations):
    return {**given, "spec": {**given["spec"], "tolerations": list(tolerations)}}


def using(name, on, count):
    return objects.running(objects.pod(name, requests={GPU: count}), on)
