"""Why a pod does not start: versions, images, missing objects, runtime classes, from what its kubelet says."""

import json

import pytest

from exporter.commands.explain.command import report
from exporter.commands.explain.sources import FileSource
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW

GPU = "nvidia.com/gpu"
CUDA = (
    "failed to create shim task: OCI runtime create failed: nvidia-container-cli: requirement error: "
    "unsatisfied condition: cuda>=12.4, please update your driver to a newer version, or use an earlier cuda container"
)


def node(name, cuda, driver="535.104.12", prefix=("runtime-version", "driver-version")):
    runtime, of_driver = prefix
    labels = objects.gpu_labels("L4", 8)
    for key, part in zip(("major", "minor"), cuda.split("."), strict=False):
        labels[f"nvidia.com/cuda.{runtime}.{key}"] = part
    last = "revision" if of_driver == "driver-version" else "rev"
    for key, part in zip(("major", "minor", last), driver.split("."), strict=False):
        labels[f"nvidia.com/cuda.{of_driver}.{key}"] = part
    return objects.node(name, {GPU: 8}, labels)


NODES = [node("n1", "12.2"), node("n2", "12.4"), node("old", "13.0", prefix=("runtime", "driver")), objects.node("cpu")]


def failing(reason, message="", *, state="waiting", **spec):
    given = objects.bound(objects.pod("p", created=NOW - 600), "n1", NOW - 500)
    given["spec"] |= spec
    given["spec"]["containers"][0]["image"] = "registry.example.com/train:v9"
    given["status"]["containerStatuses"] = [
        {"name": "main", "ready": False, "state": {state: {"reason": reason, "message": message, "exitCode": 128}}}
    ]
    return given


def event(reason, message):
    uid = objects.uid_of("pod", "default", "p")
    return {
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default", "creationTimestamp": objects.stamp(NOW - 60)},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "uid": uid},
        "reason": reason,
        "message": message,
    }


def text(tmp_path, *items):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": list(items)}))
    return report(FileSource([str(path)]), GPUS, NOW, "p", json=False)


def start(tmp_path, *items):
    """(about, text) of each finding."""
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": list(items)}))
    found = json.loads(report(FileSource([str(path)]), GPUS, NOW, "p", json=True))
    return [(each["about"], each["text"]) for each in found["start"]]


def about(found, what):
    return [text for name, text in found if name == what]


def test_the_required_and_the_offered_version_are_named_with_the_nodes_that_fit(tmp_path):
    found = start(tmp_path, failing("RunContainerError", CUDA), *NODES)
    (container,) = about(found, "container")
    assert container.startswith("container main (image registry.example.com/train:v9): RunContainerError: failed to")
    assert about(found, "cuda") == [
        "the image requires CUDA >= 12.4, the node n1 has 12.2; nodes that fit: n2, old",
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("cuda>=12.4 (cuda=12.1)", "CUDA >= 12.4, the node n1 has 12.1; nodes that fit: n2, old"),
        ("cuda >= 13", "CUDA >= 13, the node n1 has 12.2; nodes that fit: old"),
        ("cuda>=14.0", "CUDA >= 14.0, the node n1 has 12.2; no node is labeled with a version that fits"),
        ("driver>=550", "driver >= 550, the node n1 has 535.104.12; no node is labeled with a version that fits"),
        ("driver<536", "driver < 536, the node n1 has 535.104.12; nodes that fit: n1, n2, old"),
    ],
)
def test_each_condition_is_compared_as_it_is_written(tmp_path, condition, expected):
    found = start(tmp_path, failing("StartError", f"unsatisfied condition: {condition}", state="terminated"), *NODES)
    assert found[-1][1] == f"the image requires {expected}"


def test_where_the_nodes_are_not_known_or_not_labeled_no_node_is_named(tmp_path):
    found = about(start(tmp_path, failing("RunContainerError", CUDA)), "cuda")
    assert found == [
        "the image requires CUDA >= 12.4, the node n1 has an unknown version; which nodes fit is not known"
    ]
    plain = objects.node("n1", {GPU: 8}, {"nvidia.com/gpu.present": "true"})
    found = about(start(tmp_path, failing("RunContainerError", CUDA), plain), "cuda")
    unknown = "the image requires CUDA >= 12.4, the node n1 has an unknown version"
    assert found == [f"{unknown}; no node is labeled with a version that fits"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('secret "hf-token" not found', "the secret hf-token does not exist in the pod's namespace"),
        ('configmap "train" not found', "the configmap train does not exist in the pod's namespace"),
        ("couldn't find key token in Secret team-a/hf", "the secret team-a/hf has no key token"),
    ],
)
def test_a_missing_object_is_named(tmp_path, message, expected):
    found = start(tmp_path, failing("CreateContainerConfigError", message), *NODES)
    assert about(found, "object") == [expected]


def test_a_runtime_class_that_the_node_does_not_have_is_named(tmp_path):
    waits = failing("ContainerCreating", runtimeClassName="nvidia")
    message = 'Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "nvidia" is configured'
    found = start(tmp_path, waits, event("FailedCreatePodSandBox", message), *NODES)
    assert found == [
        ("event", message),
        (
            "runtime_class",
            "the runtime class nvidia needs the runtime nvidia, which the node does not have",
        ),
    ]


def test_the_pull_secrets_are_named_where_an_image_cannot_be_pulled(tmp_path):
    message = "Back-off pulling image"
    assert about(start(tmp_path, failing("ImagePullBackOff", message)), "image_pull_secret") == [
        "the pod names no pull secret"
    ]
    given = failing("ErrImagePull", message, imagePullSecrets=[{"name": "registry"}])
    assert about(start(tmp_path, given), "image_pull_secret") == ["the pod pulls with registry"]


def test_of_a_pod_that_is_not_bound_or_only_starts_nothing_is_said(tmp_path):
    assert start(tmp_path, objects.pod("p", created=NOW - 60), *NODES) == []
    assert start(tmp_path, failing("ContainerCreating"), event("TriggeredScaleUp", "pod triggered"), *NODES) == []


def test_what_a_terminal_would_act_on_is_not_written_and_long_messages_are_cut(tmp_path):
    hostile = failing("RunContainerError", "\x1b[31mred\x07\r\n" + "x" * 9000)
    hostile["spec"]["containers"][0]["image"] = "a\x1b]0;b\x07"
    written = text(tmp_path, hostile, event("FailedMount", "\x9b2J" + "y" * 400))
    assert all(line.isprintable() for line in written.split("\n"))
    assert max(map(len, written.splitlines())) < 700
