"""`gpugauge explain node/NAME`: the first broken link, and conditions and taints that others set."""

import json

import pytest

from exporter.cli import parse
from exporter.commands.explain.command import report, run
from exporter.commands.explain.sources import FileSource
from exporter.config import ConfigError
from simulators import objects
from simulators.api_server import SimulatedApiServer
from tests.exporter.cluster.fixture import GPUS, NOW
from tests.exporter.commands.explain.test_explain import GOLDEN

GPU = "nvidia.com/gpu"
PARTS = ("driver", "container-toolkit", "operator-validator", "device-plugin")
APPS = {
    "driver": "nvidia-driver-daemonset",
    "container-toolkit": "nvidia-container-toolkit-daemonset",
    "operator-validator": "nvidia-operator-validator",
    "device-plugin": "nvidia-device-plugin-daemonset",
}


def node(gpus=None, deploy="true", **labels):
    asked = {f"nvidia.com/gpu.deploy.{part}": deploy for part in PARTS}
    return objects.node("n1", {GPU: 8} if gpus is None else gpus, objects.gpu_labels("L4", 8) | asked | labels)


def ready(part, labels=None):
    given = objects.running(objects.pod(f"nvidia-{part}-x", "gpu-operator", {}), "n1", NOW - 600)
    given["metadata"]["labels"] = labels or {"app": APPS[part]}
    given["status"]["containerStatuses"] = [{"name": "main", "ready": True, "state": {"running": {}}}]
    return given


def crashing(part, message, code=1):
    given = ready(part)
    given["status"]["containerStatuses"] = [
        {
            "name": "main",
            "ready": False,
            "state": {
                "waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
            },
            "lastState": {"terminated": {"exitCode": code, "reason": "Error", "message": message}},
        }
    ]
    return given


def initializing(part, container):
    given = ready(part)
    given["status"] |= {"phase": "Pending", "containerStatuses": []}
    done = {"name": "first", "ready": True, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    given["status"]["initContainerStatuses"] = [done, {"name": container, "ready": False, "state": {"running": {}}}]
    return given


def operator(**changed):
    """The pods of the GPU Operator, of which some are changed or, with None, not there."""
    pods = [changed.get(part.replace("-", "_"), ready(part)) for part in PARTS]
    return [each for each in pods if each is not None]


def degraded():
    given = node()
    given["status"]["allocatable"][GPU] = "7"
    return given


NO_GPUS = {GPU: 0}
CUDA = "cuda workload validation failed: CUDA-capable device(s) is/are busy or unavailable"
LINKS = {
    "driver": (node(NO_GPUS), operator(driver=crashing("driver", "Could not resolve Linux kernel version"))),
    "toolkit": (node(NO_GPUS), operator(container_toolkit=initializing("container-toolkit", "driver-validation"))),
    "validator": (node(), operator(operator_validator=crashing("operator-validator", CUDA))),
    "plugin": (node(NO_GPUS), operator(device_plugin=None)),
    "registration": (node(NO_GPUS), operator()),
    "allocatable": (degraded(), operator()),
    "none": (node(), operator()),
}


def found(tmp_path, given, pods, *, as_json=True):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": [given, *pods]}))
    text = report(FileSource([str(path)]), GPUS, NOW, "node/n1", json=as_json)
    return json.loads(text) if as_json else text


@pytest.mark.parametrize("link", LINKS)
def test_the_report_of_each_broken_link_is_as_recorded(tmp_path, golden, link):
    text = found(tmp_path, *LINKS[link], as_json=False)
    golden(text, GOLDEN / f"link_{link}.txt")
    facts = found(tmp_path, *LINKS[link])
    assert facts["first_broken_link"] == (None if link == "none" else link)


@pytest.mark.parametrize(
    ("given", "pods", "link", "text"),
    [
        (
            node(NO_GPUS, "paused-for-driver-upgrade"),
            [objects.running(objects.pod("p"), "n1")],
            "driver",
            "taken its pod away: paused-for-driver-upgrade",
        ),
        (
            objects.node("n1", NO_GPUS, objects.gpu_labels("L4", 8)),
            operator()[:1],
            "plugin",
            "no pod of a device plugin",
        ),
        (node({GPU: 6}), operator(), "registration", "6 devices are registered, 8 by the node's labels"),
        (
            node(NO_GPUS, **{"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "failed"}),
            operator(),
            "registration",
            "the MIG layout all-1g.10gb is not applied yet: state failed",
        ),
    ],
)
def test_a_link_can_also_be_broken_without_a_pod(tmp_path, given, pods, link, text):
    facts = found(tmp_path, given, pods)
    assert facts["first_broken_link"] == link
    assert text in next(each["text"] for each in facts["links"] if each["name"] == link)


@pytest.mark.parametrize(
    "labels",
    [
        {"name": "nvidia-device-plugin-ds"},
        {"app.kubernetes.io/name": "nvidia-device-plugin"},
        {"k8s-app": "nvidia-gpu-device-plugin"},
    ],
)
def test_the_plain_device_plugin_is_known_and_what_is_installed_otherwise_is_no_fault(tmp_path, labels):
    given = objects.node("n1", {GPU: 8}, objects.gpu_labels("L4", 8))
    facts = found(tmp_path, given, [ready("device-plugin", labels)])
    assert facts["first_broken_link"] is None
    states = {each["name"]: each["state"] for each in facts["links"]}
    assert states == {
        "driver": "unknown",
        "toolkit": "unknown",
        "validator": "unknown",
        "plugin": "intact",
        "registration": "intact",
        "allocatable": "intact",
    }


def test_a_node_for_virtual_machines_has_its_own_pods(tmp_path):
    given = objects.node("n1", {"nvidia.com/GA102GL_A10": 0}, {"nvidia.com/gpu.present": "true"})
    apps = ("vfio-manager", "sandbox-validator", "sandbox-device-plugin-daemonset")
    facts = found(tmp_path, given, [ready(app, {"app": f"nvidia-{app}"}) for app in apps])
    states = {each["name"]: each["state"] for each in facts["links"][:4]}
    assert states == {"driver": "intact", "toolkit": "unknown", "validator": "intact", "plugin": "intact"}
    assert facts["first_broken_link"] == "registration"


def test_a_driver_of_the_node_itself_and_a_mixed_mig_layout_are_intact(tmp_path):
    labels = {"nvidia.com/gpu.deploy.driver": "pre-installed", "nvidia.com/mig.strategy": "mixed"}
    given = node({GPU: 1, "nvidia.com/mig-1g.10gb": 2}, **labels)
    facts = found(tmp_path, given, operator(driver=None))
    assert facts["first_broken_link"] is None
    assert facts["links"][0]["text"] == "installed on the node itself"


def test_a_pod_that_only_waits_is_named_with_its_last_event(tmp_path):
    waiting = ready("driver")
    waiting["status"] |= {"phase": "Pending"}
    waiting["status"]["containerStatuses"][0] |= {"ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
    message = 'MountVolume.SetUp failed for volume "driver-config": configmap "driver-config" not found'
    events = [
        {
            "kind": "Event",
            "metadata": {
                "name": f"e{age}",
                "namespace": namespace,
                "creationTimestamp": objects.stamp(NOW - age),
            },
            "involvedObject": {"kind": "Pod", "uid": waiting["metadata"]["uid"]},
            "reason": "FailedMount",
            "message": text,
        }
        for namespace, age, text in (
            (waiting["metadata"]["namespace"], 60, message),
            (waiting["metadata"]["namespace"], 600, "older"),
            ("team-b", 10, "forged"),
        )
    ]
    (link, *_) = found(tmp_path, node(NO_GPUS), [*operator(driver=waiting), *events])["links"]
    assert link["text"] == (
        "container main of its pod is not ready; ContainerCreating: no message; "
        f"its last event is FailedMount: {message}"
    )


def test_conditions_and_taints_are_named_with_their_writer_and_message(tmp_path):
    given = objects.cordoned(node())
    given["spec"]["taints"] += [
        {"key": "nvidia.com/gpu-xid-error", "value": "true", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "team-a", "effect": "NoSchedule"},
    ]
    given["status"]["conditions"] += [
        {"type": "GpuMemWatch", "status": "True", "reason": "Faulty", "message": "[DCGM_FR_FAULTY_MEMORY] GPU 0"},
        {"type": "SysLogsXIDError", "status": "False", "message": "No Health Failures"},
        {"type": "KernelDeadlock", "status": "True", "reason": "DockerHung", "message": "task docker blocked"},
        {"type": "GpuCount", "status": "True", "message": "7 of 8"},
        {"type": "AcceleratedHardwareReady", "status": "False", "message": "Xid 79"},
        {"type": "MemoryPressure", "status": "False"},
        {"type": "Mystery", "status": "Unknown", "message": "no answer"},
    ]
    facts = found(tmp_path, given, operator())
    assert [(each["name"], each["writer"], each["message"]) for each in facts["conditions"]] == [
        ("GpuMemWatch", "NVSentinel", "Faulty: [DCGM_FR_FAULTY_MEMORY] GPU 0"),
        ("KernelDeadlock", "node-problem-detector", "DockerHung: task docker blocked"),
        ("GpuCount", "node-problem-detector", "7 of 8"),
        ("AcceleratedHardwareReady", "EKS node monitoring agent", "Xid 79"),
        ("Mystery", "another program", "state Unknown: no answer"),
    ]
    assert [(each["name"], each["writer"]) for each in facts["taints"]] == [
        ("node.kubernetes.io/unschedulable:NoSchedule", "kubelet"),
        ("nvidia.com/gpu-xid-error=true:NoSchedule", "NVSentinel"),
    ]
    text = found(tmp_path, given, operator(), as_json=False)
    assert "  GpuMemWatch (by NVSentinel): Faulty: [DCGM_FR_FAULTY_MEMORY] GPU 0\n" in text
    assert "\nThe node is cordoned.\n" in text


def test_what_a_terminal_would_act_on_is_not_written(tmp_path):
    given = node()
    given["status"]["conditions"].append({"type": "Gpu\x1b[31m", "status": "True", "message": "\x07\x1b]0;x\x07\r"})
    pods = operator(driver=crashing("driver", "line\n\x1b[2Jline\u202e" + "x" * 9000))
    text = found(tmp_path, given, pods, as_json=False)
    assert all(line.isprintable() for line in text.split("\n"))
    assert max(map(len, text.splitlines())) < 800


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([objects.pod("p")], "node n1: the nodes may not be read"),
        ([objects.node("n2")], "node n1 is not known"),
        ([objects.node("n1")], "node n1 has no GPUs"),
    ],
)
def test_a_node_of_which_nothing_can_be_said_is_one_message(tmp_path, items, message):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": items}))
    with pytest.raises(ConfigError, match=message):
        report(FileSource([str(path)]), GPUS, NOW, "node/n1", json=False)


def test_a_node_with_a_device_and_no_other_label_has_no_registered_devices(tmp_path):
    given = objects.node("n1", labels={"feature.node.kubernetes.io/pci-10de.present": "true"})
    assert found(tmp_path, given, [objects.pod("p")])["first_broken_link"] == "plugin"


def test_in_a_cluster_the_pods_of_the_node_alone_are_asked_for():
    server = SimulatedApiServer()
    server.start()
    try:
        server.put("nodes", node(NO_GPUS))
        for each in operator(driver=crashing("driver", "no kernel headers")):
            server.put("pods", each)
        text = run(parse(["explain", "node/n1", "--api-server", server.url], {}), lambda: NOW)
        assert text.startswith("node/n1: the first broken link is driver\n")
        assert "no kernel headers" in text
    finally:
        server.stop()
