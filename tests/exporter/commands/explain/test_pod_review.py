"""The review of a pod's spec: one test for each mistake, and none is found in a right spec."""

import json

import pytest

from exporter.cluster.scheduling.explaining.spec_review import MISTAKES
from exporter.commands.explain.command import report
from exporter.commands.explain.sources import FileSource
from exporter.config import ConfigError
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
H100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(name="n1", resources=None, product=H100, sharing="none", taints=None):
    labels = objects.gpu_labels(product, 8, sharing, mig="mixed")
    return objects.node(name, resources or {GPU: 8}, labels, taints)


def pod(requests=None, **spec):
    given = objects.pod("p", requests=requests, created=NOW - 60)
    given["spec"] |= spec
    return given


def found(tmp_path, given, nodes):
    """The mistakes and what is written of them."""
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": [given, *nodes]}))
    facts = json.loads(report(FileSource([str(path)]), GPUS, NOW, "p", json=True))
    return {each["mistake"]: each["text"] for each in facts["mistakes"]}


def demanding(products, key="nvidia.com/gpu.product"):
    """An affinity with an alternative for each product."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [each]}]} for each in products]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def of_container(given, **fields):
    given["spec"]["containers"][0] |= fields
    return given


def env(**variables):
    return [{"name": name, "value": value} for name, value in variables.items()]


REQUESTED = {"requests": {GPU: "1"}, "limits": {"cpu": "1"}}
ALL = env(NVIDIA_VISIBLE_DEVICES="all")
WRONG = [
    ("gpu_under_requests_only", of_container(pod(), resources=REQUESTED), [node()], f"{GPU} of container main"),
    ("missing_toleration", pod(tolerations=[]), [node(taints=[GPU_TAINT])], "nvidia.com/gpu=present:NoSchedule"),
    ("product_of_no_node", pod(nodeSelector={"nvidia.com/gpu.product": "A100"}), [node()], f"(there is: {H100})"),
    ("product_of_no_node", pod(affinity=demanding(["A100", "V100"])), [node()], "A100, nvidia.com/gpu.product=V100"),
    (
        "product_of_no_node",
        pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"}),
        [node()],
        "(there is: none)",
    ),
    ("mig_not_offered", pod({MIG: 1}), [node(resources={GPU: 7})], f"{MIG} (there is: {GPU})"),
    ("mistyped_resource", pod({"nvidia.com/gpus": 1}), [node()], f"nvidia.com/gpus (probably meant: {GPU})"),
    ("mistyped_resource", pod({"nvidia/gpu": 1}), [node()], f"nvidia/gpu (probably meant: {GPU})"),
    (
        "mistyped_resource",
        pod({"nvidia.com/mig1g.10gb": 1}),
        [node(resources={GPU: 7, MIG: 2})],
        f"(probably meant: {MIG})",
    ),
    ("too_many_replicas", pod({GPU: 2}), [node(sharing="mps")], f"2 {GPU}"),
    (
        "devices_without_request",
        of_container(pod({}), env=ALL),
        [node()],
        "NVIDIA_VISIBLE_DEVICES=all in container main",
    ),
    ("devices_without_request", of_container(pod({}), env=env(NVIDIA_VISIBLE_DEVICES="0,1")), [node()], "=0,1"),
    ("several_models", pod(), [node(), node("n2", product=L4)], f"{H100}, {L4}"),
]


@pytest.mark.parametrize(
    ("mistake", "given", "nodes", "text"), WRONG, ids=[f"{each[0]}-{n}" for n, each in enumerate(WRONG)]
)
def test_a_mistake_is_found_alone(tmp_path, mistake, given, nodes, text):
    review = found(tmp_path, given, nodes)
    assert set(review) == {mistake}
    assert text in review[mistake]


def test_every_mistake_has_a_test():
    assert {each[0] for each in WRONG} == {row.name for row in MISTAKES}


SHARED = of_container(pod(), env=ALL)
MONITOR = of_container(pod({}), env=env(NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="utility"))
CLAIM = of_container(pod({}), env=ALL, resources={"claims": [{"name": "gpu"}]})
RIGHT = [
    (pod(), [node()]),
    (pod(tolerations=[]), [node()]),
    (pod(tolerations=[]), [node(taints=[GPU_TAINT]), node("n2")]),
    (pod(tolerations=[]), [objects.cordoned(node())]),
    (pod(nodeSelector={"nvidia.com/gpu.product": L4}), [node(), node("n2", product=L4)]),
    (pod(affinity=demanding(["A100", H100])), [node()]),
    (pod({MIG: 1}), [node(resources={GPU: 7, MIG: 2})]),
    (pod({GPU: 2}), [node(sharing="time-slicing")]),
    (pod({GPU: 2}), [node(sharing="mps"), node("n2")]),
    (pod({"amd.com/gpu": 1}), [node()]),
    (pod({"nvidia.com/gpumem": 1000}), [node()]),
    (SHARED, [node()]),
    (pod(), []),
]


@pytest.mark.parametrize(("given", "nodes"), RIGHT)
def test_nothing_is_found_in_a_right_spec(tmp_path, given, nodes):
    try:
        assert found(tmp_path, given, nodes) == {}
    except ConfigError as error:
        assert "is no GPU pod" in str(error)  # noqa: PT017 - pods of other devices are not explained


@pytest.mark.parametrize("given", [MONITOR, CLAIM, of_container(pod({}), env=env(NVIDIA_VISIBLE_DEVICES="void"))])
def test_a_container_that_monitors_or_has_a_claim_may_see_gpus(tmp_path, given):
    with pytest.raises(ConfigError, match="is no GPU pod"):
        found(tmp_path, given, [node()])


def test_a_pod_without_gpus_that_runs_is_reviewed_too(tmp_path):
    running = objects.running(of_container(pod({}), env=ALL), "n1")
    assert set(found(tmp_path, running, [node()])) == {"devices_without_request"}


def test_a_kubelets_word_that_replicas_are_too_many_counts(tmp_path):
    given = pod({GPU: 2})
    message = (
        "Allocate failed: request for 'nvidia.com/gpu: 2' too large: maximum request size for shared resources is 1"
    )
    given["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}
    assert message in found(tmp_path, given, [node(sharing="time-slicing")])["too_many_replicas"]


def test_where_the_nodes_are_not_known_only_the_spec_counts(tmp_path):
    assert set(found(tmp_path, pod({"nvidia.com/gpus": 1}), [])) == {"mistyped_resource"}
    assert found(tmp_path, pod({"nvidia.com/gpu-h100": 1}, nodeSelector={"nvidia.com/gpu.product": "A100"}), []) == {}


def test_a_manifest_of_a_pod_that_does_not_exist_yet_is_reviewed(tmp_path):
    given = pod(tolerations=[])
    given["metadata"] = {"name": "p", "creationTimestamp": None}
    del given["status"]
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": [given, node(taints=[GPU_TAINT])]}))
    text = report(FileSource([str(path)]), GPUS, NOW, "p", json=False)
    assert text.startswith("default/p: not pending\n\nMistakes in the pod's spec:\n  missing_toleration: ")


@pytest.mark.parametrize("name", ["p\x1b[2J", "p; reboot", "p\u202e"])
def test_hostile_names_and_values_reach_neither_the_terminal_nor_a_shell(tmp_path, name):
    given = of_container(pod({}), env=env(NVIDIA_VISIBLE_DEVICES="all\x1b[31m{found}\r\n"))
    given["metadata"]["name"] = name
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(given))
    text = report(FileSource([str(path)]), GPUS, NOW, name, json=False)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "NVIDIA_VISIBLE_DEVICES=all [31m{found}   in container main" in text
    assert f"'{''.join(each if each.isprintable() else ' ' for each in name)}'" in text


@pytest.mark.parametrize("spec", [None, {}, {"containers": None}, {"containers": [{"env": 7}]}, {"containers": [None]}])
def test_a_pod_that_cannot_be_read_has_no_mistakes(tmp_path, spec):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}))
    with pytest.raises(ConfigError, match="is no GPU pod"):
        report(FileSource([str(path)]), GPUS, NOW, "p", json=False)
