"""Of a pod's JSON few fields are kept, and what its author writes is limited."""

import json

import msgspec
import pytest

from exporter.gpu_names import GpuResources
from exporter.node.pods.decode import MAX_ANNOTATION, MAX_DEVICES, MAX_KEPT, PodDecoder
from exporter.node.pods.exposed_labels import MAX_VALUE, exposed_labels
from exporter.node.pods.name_patterns import NamePatterns
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import ContainerKind, NodeContainer
from tests.exporter.node.pod_node import GPU, pod

DECODE = PodDecoder(PodOptions("api", labels=NamePatterns.whole(("app",))), GpuResources())
HASH = "0123456789abcdef0123456789abcdef"
ID = "ab" * 32


def decoded(**more):
    return DECODE(msgspec.Raw(json.dumps(pod("p", **more)).encode()))


def test_only_labels_and_annotations_that_are_needed_or_allowed_are_kept():
    found = decoded(
        labels={"app": "a", "other": "b", "runai-gpu-group": "g", "runai-gpu-group/g2": "g2"},
        annotations={"hami.io/vgpu-devices-allocated": "x", "secret": "y", "gpu-fraction": "0.5"},
    )
    assert found.labels == {"app": "a", "runai-gpu-group": "g", "runai-gpu-group/g2": "g2"}
    assert found.annotations == {"hami.io/vgpu-devices-allocated": "x", "gpu-fraction": "0.5"}
    assert decoded(annotations={"gpu-fraction": "x" * (MAX_ANNOTATION + 1)}).annotations == {}


def test_containers_of_every_kind_with_what_they_ask_for_and_were_given():
    limits = {"resources": {"limits": {GPU: "2", "cpu": "8", "example.com/nic": 1}}}
    ids = [{"name": GPU, "resources": [{"resourceID": "GPU-b"}, {"resourceID": "GPU-a"}]}, {"name": "claim:x"}]
    found = decoded(
        spec={
            "initContainers": [{"name": "load", **limits}, {"name": "proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "main", "resources": {"requests": {GPU: 1}}}],
            "ephemeralContainers": [{"name": "debug"}],
        },
        status={
            "initContainerStatuses": [{"name": "load", "state": {"running": {"startedAt": "x"}}, "restartCount": 0}],
            "containerStatuses": [
                {"name": "main", "containerID": f"containerd://{ID}", "state": {"waiting": {}},
                 "allocatedResourcesStatus": ids}
            ],
        },
    )  # fmt: skip
    assert found.containers == (
        NodeContainer("load", ContainerKind.INIT, running=True, requests={GPU: 2}),
        NodeContainer("proxy", ContainerKind.SIDECAR),
        NodeContainer(
            "main", ContainerKind.ORDINARY, ID, requests={GPU: 1}, device_ids=((GPU, "GPU-a"), (GPU, "GPU-b"))
        ),
        NodeContainer("debug", ContainerKind.EPHEMERAL),
    )


@pytest.mark.parametrize("value", ["-1", "1.5", "1e9", "", "x", MAX_DEVICES + 1, -3, 2.5, "٣"])
def test_what_is_no_number_of_devices_asks_for_none(value):
    found = decoded(spec={"containers": [{"name": "main", "resources": {"limits": {GPU: value}}}]})
    assert found.containers[0].requests == {}


@pytest.mark.parametrize("id_", [None, "", ID, f"containerd://{ID}0", "docker://../../etc", f"x/y://{ID}"])
def test_what_is_no_container_id_is_none(id_):
    found = decoded(status={"containerStatuses": [{"name": "main", "containerID": id_}]})
    assert found.containers[0].id == ""


@pytest.mark.parametrize(
    ("owner", "annotations", "uid"),
    [
        (("Node", "n1"), {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}, HASH),
        (("Node", "n1"), {"kubernetes.io/config.hash": HASH}, "uid-of-p"),
        (("Node", "n1"), {"kubernetes.io/config.hash": "u", "kubernetes.io/config.mirror": "u"}, "uid-of-p"),
        (("Job", "j"), {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}, "uid-of-p"),
        (("", ""), {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}, "uid-of-p"),
    ],
)
def test_only_a_static_pod_has_another_uid_in_its_control_groups(owner, annotations, uid):
    found = decoded(owner=owner, annotations=annotations)
    assert (found.uid, found.cgroup_uid) == ("uid-of-p", uid)


def test_workload_and_phase():
    found = decoded(owner=("Job", "train"), phase="Succeeded")
    assert (found.workload, found.workload_type, found.finished) == ("train", "job", True)


def test_a_pod_without_anything_but_a_name_is_one():
    found = DECODE(msgspec.Raw(b'{"metadata":{"name":"p","labels":null},"spec":null,"status":null}'))
    assert (found.name, found.containers, found.phase, found.finished) == ("p", (), "", False)


def test_what_is_kept_of_labels_and_annotations_is_limited():
    every = PodOptions("api", labels=NamePatterns.anywhere((".",)), annotations=NamePatterns.anywhere((".",)))
    labels = {f"l{number:05}": "x" for number in range(10 * MAX_KEPT)}
    given = pod("p", labels=labels, annotations=dict.fromkeys(labels, "y" * 10_000))
    found = PodDecoder(every, GpuResources())(msgspec.Raw(json.dumps(given).encode()))
    assert list(found.labels) == sorted(labels)[:MAX_KEPT]
    assert {len(value) for value in found.annotations.values()} == {MAX_VALUE + 1}
    assert len(found.annotations) == MAX_KEPT
    shown = exposed_labels(found, PodOptions("api", annotations=every.annotations))
    assert shown.shortened == len(shown.pairs)
    assert {len(value) for _, value in shown.pairs} == {MAX_VALUE}
