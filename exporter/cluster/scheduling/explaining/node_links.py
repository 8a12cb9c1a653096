"""Finds the first broken link between a node's GPUs and the pods that want them. No I/O, no state.

The links are the driver, the container toolkit, the GPU Operator's validator, the pod of the device plugin, its
registration with the kubelet, and healthy devices. Labels of pods and nodes are those of the GPU Operator, of the
device plugin's own chart and manifest, and of GKE.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from exporter.cluster.kubernetes.converting.events import Event, events_about
from exporter.cluster.kubernetes.nodes.node_description import MIG_CONFIG, MIG_STATE, labeled_devices
from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.kubernetes.pods.pod_detail import ContainerReport, PodDetail
from exporter.gpu_names import WHOLE_GPU

_DEPLOY = "nvidia.com/gpu.deploy."
_MIG_SETTLED = frozenset({"", "success"})
_LONGEST = 500
"""Characters of a message that are shown."""
_MIXED = "mixed"


class PodLink(NamedTuple):
    """A link that is a pod on each node."""

    name: str
    component: str
    """How the GPU Operator's label on the node ends that asks for the pod."""
    labels: tuple[tuple[str, str], ...]
    """Labels by which the pod is known, each by itself; nodes for virtual machines have other pods for a link."""


POD_LINKS = (
    PodLink(
        "driver",
        "driver",
        (
            ("app", "nvidia-driver-daemonset"),
            ("app", "nvidia-vgpu-manager-daemonset"),
            ("app", "nvidia-vfio-manager"),
            ("app.kubernetes.io/component", "nvidia-driver"),
            ("k8s-app", "nvidia-driver-installer"),
        ),
    ),
    PodLink("toolkit", "container-toolkit", (("app", "nvidia-container-toolkit-daemonset"),)),
    PodLink(
        "validator",
        "operator-validator",
        (("app", "nvidia-operator-validator"), ("app", "nvidia-sandbox-validator")),
    ),
    PodLink(
        "plugin",
        "device-plugin",
        (
            ("app", "nvidia-device-plugin-daemonset"),
            ("app", "nvidia-sandbox-device-plugin-daemonset"),
            ("app.kubernetes.io/name", "nvidia-device-plugin"),
            ("name", "nvidia-device-plugin-ds"),
            ("k8s-app", "nvidia-gpu-device-plugin"),
        ),
    ),
)


REMEDIES = {
    "driver": "Read the log of the driver's pod: the kernel's headers, a kernel that was updated, or a driver in use.",
    "toolkit": "Read the log of the toolkit's pod; it waits for the driver, then changes the runtime's settings.",
    "validator": "Read the logs of the validator's init containers: the one that fails names what does not work.",
    "plugin": "Look at the DaemonSet of the device plugin: its node selector, its tolerations, and its pod's log.",
    "registration": "Read the device plugin's log for what it found and registered, and the kubelet's log.",
    "allocatable": "Read the device plugin's log for the device that it calls unhealthy, and the node's log for XIDs.",
}
"""What to do where a link is the first broken one."""


class NodeLink(NamedTuple):
    """A link of one node."""

    name: str
    state: Literal["intact", "broken", "unknown"]
    text: str
    namespace: str = ""
    pod: str = ""
    """The pod that the text is about; empty where it is about none."""


def links(
    node: Node, pods: Sequence[PodDetail] | None, events: Mapping[str, tuple[Event, ...]], *, through_dra: bool
) -> list[NodeLink]:
    """All links of a node in order.

    `pods` are those on the node, None while they are not known; `events` are by the uid that they are about.
    """
    labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    found = [_pod_link(each, labels, pods, events) for each in POD_LINKS]
    if through_dra:
        return [each for each in found if each.name != "plugin" or each.pod] + [
            NodeLink("registration", "intact", "a DRA driver has published its devices in ResourceSlices")
        ]
    registration = _registration(node, labels)
    if found[-1].state == "unknown" and pods is not None and registration.state == "broken":
        found[-1] = NodeLink("plugin", "broken", "no pod of a device plugin is on the node")
    return [*found, registration, _allocatable(node)]


def first_broken(found: Iterable[NodeLink]) -> NodeLink | None:
    """The first link that is broken; None where none is."""
    return next((each for each in found if each.state == "broken"), None)


def _pod_link(
    link: PodLink, labels: Mapping[str, str], pods: Sequence[PodDetail] | None, events: Mapping[str, tuple[Event, ...]]
) -> NodeLink:
    if pods is None:
        return NodeLink(link.name, "unknown", "the pods of the node may not be read")
    own = [each for each in pods if any(_has(each, *label) for label in link.labels)]
    if own:
        return _worst(link, own, events)
    asked = labels.get(_DEPLOY + link.component, "")
    if asked == "true":
        return NodeLink(
            link.name, "broken", f"the node's label {_DEPLOY}{link.component} asks for a pod that is not there"
        )
    if asked.startswith("paused"):
        return NodeLink(link.name, "broken", f"the GPU Operator has taken its pod away: {asked}")
    if asked == "pre-installed":
        return NodeLink(link.name, "intact", "installed on the node itself")
    return NodeLink(link.name, "unknown", "no pod of it is on the node, and no label asks for one")


def _has(pod: PodDetail, key: str, value: str) -> bool:
    return (pod.metadata.labels or {}).get(key) == value


def _worst(link: PodLink, pods: Sequence[PodDetail], events: Mapping[str, tuple[Event, ...]]) -> NodeLink:
    for pod in pods:
        problem = pod_problem(pod)
        if problem:
            text = problem + _last_event(events_about(events, pod.metadata.namespace, pod.metadata.uid))
            return NodeLink(link.name, "broken", text, pod.metadata.namespace, pod.metadata.name)
    meta = pods[0].metadata
    return NodeLink(link.name, "intact", "its pod is ready", meta.namespace, meta.name)


def _last_event(events: Sequence[Event]) -> str:
    if not events:
        return ""
    last = max(events, key=lambda event: event.at)
    return f"; its last event is {last.reason}: {_short(last.message)}"


def pod_problem(pod: PodDetail) -> str:
    """What keeps a pod from being ready, with its last message; nothing for one that is ready."""
    status = pod.status
    if status.phase == "Failed":
        return f"its pod has failed: {_short(status.message)}"
    for each in status.init_container_statuses or ():
        ended = each.now().terminated
        if not each.ready and not (ended is not None and ended.exit_code == 0):
            return f"its pod waits for init container {each.name}{_said(each)}"
    for each in status.container_statuses or ():
        if not each.ready:
            return f"container {each.name} of its pod is not ready{_said(each)}"
    if status.phase == "Running":
        return ""
    refused = (each for each in status.conditions or () if each.status == "False" and each.message)
    return f"its pod is not running: {_short(next((each.message for each in refused), None))}"


def _said(report: ContainerReport) -> str:
    waiting, ended = report.now().waiting, report.ended()
    parts = [] if waiting is None else [f"{waiting.reason or 'waiting'}: {_short(waiting.message)}"]
    if ended is not None:
        code = "" if ended.exit_code is None else f" with exit code {ended.exit_code}"
        parts.append(f"it ended{code} ({ended.reason or 'no reason'}): {_short(ended.message)}")
    return "".join(f"; {each}" for each in parts)


def _short(message: str | None) -> str:
    text = " ".join((message or "no message").split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _registration(node: Node, labels: Mapping[str, str]) -> NodeLink:
    offered = [(name, count) for name, count in node.capacity if count]
    state = labels.get(MIG_STATE, "")
    if state not in _MIG_SETTLED:
        layout = labels.get(MIG_CONFIG, "unknown")
        return NodeLink("registration", "broken", f"the MIG layout {layout} is not applied yet: state {state}")
    if not offered:
        return NodeLink("registration", "broken", "no device plugin has registered devices with the kubelet")
    expected, mixed = labeled_devices(labels), labels.get("nvidia.com/mig.strategy") == _MIXED
    names = {name for name, _ in offered}
    total = sum(count for _, count in offered)
    if expected is not None and expected > total and not (mixed and names != {WHOLE_GPU}):
        return NodeLink("registration", "broken", f"{total} devices are registered, {expected} by the node's labels")
    return NodeLink("registration", "intact", ", ".join(f"{count} {name}" for name, count in offered))


def _allocatable(node: Node) -> NodeLink:
    healthy = dict(node.allocatable)
    lacking = [(name, healthy.get(name, 0), count) for name, count in node.capacity if healthy.get(name, 0) < count]
    if lacking:
        text = ", ".join(f"{some} of {count} {name}" for name, some, count in lacking)
        return NodeLink("allocatable", "broken", f"healthy are only {text}")
    if not any(healthy.values()):
        return NodeLink("allocatable", "broken", "no devices")
    return NodeLink("allocatable", "intact", ", ".join(f"{count} {name}" for name, count in node.allocatable if count))
