"""Series of exporters and watchers as Prometheus stores them: exposed labels merged with those of the scrape target."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.alerts.promtool import RuleFixture

LONG = "x180"
"""Ninety minutes of a constant."""

Labels = Mapping[str, str]


def always(value: float | str) -> str:
    return f"{value}{LONG}"


@dataclass(frozen=True)
class Flavor:
    """Which exporter it is, how it is scraped, and which names and units it uses."""

    name: str
    honor: bool
    own: bool = True
    """Whether it is gpugauge; otherwise it is dcgm-exporter."""
    host: str = "hostname"
    uuid: str = "UUID"
    engine: str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    util: str = "DCGM_FI_DEV_GPU_UTIL"
    percent: bool = True
    pod_labels: tuple[str, str, str] = ("namespace", "pod", "container")
    cluster: str = ""
    uid: str = ""
    """The label for the uid of the pod, where dcgm-exporter exposes one."""
    pod_targets: bool = True
    """Whether the target carries namespace, pod, container and node of the exporter, as monitors set them."""


FLAVORS = (
    Flavor("own-true", honor=True),
    Flavor("own-false", honor=False, cluster="west"),
    Flavor("own-static", honor=False, pod_targets=False),
    Flavor("stock482-true", honor=True, own=False, host="Hostname"),
    Flavor("stock483-false", honor=False, own=False, uid="pod_uid"),
    Flavor(
        "stock49-false",
        honor=False,
        own=False,
        engine="DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
        util="DCGM_FI_DEV_GPU_UTIL_RATIO",
        percent=False,
    ),
    Flavor(
        "stock-old-names",
        honor=True,
        own=False,
        host="Hostname",
        uuid="uuid",
        pod_labels=("pod_namespace", "pod_name", "container_name"),
        pod_targets=False,
    ),
)


def stored(exposed: Labels, target: Labels, *, honor: bool) -> dict[str, str]:
    """The stored labels. With honor_labels the exposed ones, even if empty, replace those of the target.

    Without it an exposed label that the target has too is renamed to exported_….
    """
    if honor:
        return {**target, **exposed}
    moved = {f"exported_{name}" if name in target else name: value for name, value in exposed.items() if value}
    return {**moved, **target}


@dataclass(frozen=True)
class Pod:
    name: str = "p"
    workload_class: str = "training"
    start: str = always(0)
    phases: Mapping[str, str] | None = None
    override: float | None = None
    exempt_from: str = ""
    watchers: int = 1
    state_metrics: int = 0
    state_phase: str = "Running"
    uids: tuple[tuple[str, str], ...] = (("uid-1", always(1)),)
    containers: tuple[str, ...] = ("main",)
    priorities: tuple[str, ...] = ("", "")
    """The priority class of the pod, as each watcher exposes it."""
    exposed_workload: str = ""
    """The workload, where the node exporter exposes it on the allocation."""
    job: str = ""
    """The workload, where it is not the pod's own."""
    watched: str = ""
    """When a watcher exposes the pod, as samples of 1; empty for always."""
    owner: tuple[str, str] | None = None
    """Kind and name of the controller, as kube-state-metrics has them."""
    owned: tuple[str, str] = ("", "")
    """The workload that follows from it, and its type."""


@dataclass(frozen=True)
class Gpu:
    engine: str | None = None
    util: float | None = None
    encoder: float | None = None
    gi: str = ""
    pods: tuple[str, ...] = ("p",)
    present: str = always(1)
    """When the exporter exposes it."""
    index: int | None = None
    second_flavor: Flavor | None = None
    """A second exporter on the node that exposes the same GPU."""
    second_pod: str = ""
    """The pod that the second exporter exposes, if it is another one."""
    allocation_unknown: bool = False
    """The kubelet did not answer: gpugauge exposes neither allocations nor that there are none."""
    unlisted_pods: int = 0
    """Pods that are counted and not listed as allocations."""

    @property
    def busy(self) -> str | None:
        """What gpugauge exposes as busy: the larger of compute and video activity; None where it does not know it."""
        if self.engine is None:
            return None if self.util is None or self.gi else always(self.util / 100)
        if self.encoder is None or self.gi:
            return self.engine
        assert self.engine.endswith(LONG), "video activity beside a changing one"
        return always(max(float(self.engine.removesuffix(LONG)), self.encoder / 100))


class Node:
    """One node with an exporter of one flavor, and its pods, in a namespace of its own."""

    def __init__(self, fixture: RuleFixture, flavor: Flavor, name: str, cluster: str | None = None) -> None:
        self.fixture, self.flavor = fixture, flavor
        self.namespace = f"{flavor.name}-{name}"
        self.node = f"node-{self.namespace}"
        self.cluster = flavor.cluster if cluster is None else cluster
        self.uids: dict[str, tuple[tuple[str, str], ...]] = {}
        self.containers: dict[str, tuple[str, ...]] = {}
        self.workloads: dict[str, str] = {}

    def workload(self, pod: Pod) -> dict[str, str]:
        """The labels that an alert for the pod must have."""
        workload, kind = pod.owned if pod.owner and all(pod.owned) else (pod.name, "pod")
        if pod.exposed_workload and self.flavor.own:
            workload, kind = pod.exposed_workload, "CronJob"
        if pod.watchers:
            workload, kind = pod.job or f"job-{pod.name}", "Job"
        return {"pod": pod.name, "node": self.node, "workload": workload, "workload_type": kind}

    def target(self, flavor: Flavor, suffix: str = "") -> dict[str, str]:
        job = "gpugauge-node" if flavor.own else "nvidia-dcgm-exporter"
        labels = {"job": job, "instance": f"{self.node}:9400{suffix}", "cluster": self.cluster}
        if flavor.own and flavor.pod_targets:
            labels["node"] = self.node
        if flavor.pod_targets:
            labels |= {"namespace": "monitoring", "pod": f"exporter-{self.node}{suffix}", "container": "exporter"}
        return labels

    def up(self, value: str = always(1)) -> None:
        self.fixture.add("up", self.target(self.flavor), value)

    def pod(self, pod: Pod) -> None:
        self.uids[pod.name], self.containers[pod.name] = pod.uids, pod.containers
        self.workloads[pod.name] = pod.exposed_workload
        for number in range(pod.watchers):
            self._watch(pod, number)
        for number in range(pod.state_metrics):
            self._state(pod, number)

    def exempt_namespace(self, alert: str) -> None:
        exposed = {"namespace": self.namespace, "gpu_namespace": self.namespace, "alert": alert, "until": ""}
        self._add_watcher("gpugauge_namespace_alert_exemption", exposed, always(1), 0)

    def gpu(self, number: int, gpu: Gpu) -> None:
        index = number if gpu.index is None else gpu.index
        self._add_gpu(self.flavor, index, gpu, "")
        if gpu.second_flavor:
            self._add_gpu(gpu.second_flavor, index, gpu, "-second")

    def _add_watcher(self, name: str, exposed: Labels, values: str, number: int) -> None:
        target = {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": self.cluster}
        if self.flavor.pod_targets:
            target |= {"namespace": "monitoring", "pod": f"watcher-{number}", "container": "watcher"}
        self.fixture.add(name, stored(exposed, target, honor=self.flavor.honor), values)

    def _watch(self, pod: Pod, number: int) -> None:
        ids = {"namespace": self.namespace, "pod": pod.name, "gpu_namespace": self.namespace, "gpu_pod": pod.name}
        owner = {"node": self.node, "workload": pod.job or f"job-{pod.name}", "workload_type": "Job"}
        owner |= {"workload_class": pod.workload_class, "priority_class": pod.priorities[number]}
        while_watched = pod.watched or always(1)
        for uid, values in pod.uids:
            exposed = {**ids, **owner, "gpu_pod_uid": uid}
            self._add_watcher("gpugauge_gpu_pod_info", exposed, pod.watched or values, number)
        start = pod.watched.replace("1x", "0x") or pod.start
        self._add_watcher("gpugauge_gpu_pod_start_timestamp_seconds", ids, start, number)
        for phase, values in (pod.phases or {"Running": while_watched}).items():
            self._add_watcher("gpugauge_gpu_pod_phase", {**ids, "phase": phase}, values, number)
        if pod.override is not None:
            name = "gpugauge_pod_low_utilization_threshold_ratio"
            self._add_watcher(name, ids, while_watched.replace("1x", f"{pod.override}x"), number)
        if pod.exempt_from:
            exposed = {**ids, "alert": pod.exempt_from, "until": "2027-01-31"}
            self._add_watcher("gpugauge_pod_alert_exemption", exposed, while_watched, number)

    def _state(self, pod: Pod, number: int) -> None:
        labels = {"namespace": self.namespace, "pod": pod.name, "uid": "uid-1", "cluster": self.cluster}
        labels |= {"job": "kube-state-metrics", "instance": f"ksm-{number}:8080"}
        self.fixture.add("kube_pod_start_time", labels, pod.start)
        if pod.owner is not None:
            kind, name = pod.owner
            owner = {"owner_kind": kind, "owner_name": name, "owner_is_controller": "true" if kind else ""}
            self.fixture.add("kube_pod_owner", {**labels, **owner}, always(1))
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            self.fixture.add("kube_pod_status_phase", {**labels, "phase": phase}, always(int(phase == pod.state_phase)))

    def _add_gpu(self, flavor: Flavor, index: int, gpu: Gpu, suffix: str) -> None:
        device = {"gpu": str(index), flavor.uuid: f"GPU-{self.namespace}-{index}", flavor.host: self.node}
        device |= {"GPU_I_ID": gpu.gi, "GPU_I_PROFILE": "1g.10gb" if gpu.gi else ""}
        pods = (gpu.second_pod,) if suffix and gpu.second_pod else gpu.pods
        target = self.target(flavor, suffix)
        for exposed in self._pod_labels(flavor, pods):
            self._add_samples(flavor, gpu, {**device, "modelName": "NVIDIA H100", **exposed}, target)
        if flavor.own:
            self._add_allocations(flavor, gpu, device, target)

    def _pod_labels(self, flavor: Flavor, pods: tuple[str, ...]) -> list[dict[str, str]]:
        """The pod labels of each copy of a device: gpugauge names the pod of an exclusive device or none.

        dcgm-exporter repeats a shared device once per pod.
        """
        names = flavor.pod_labels
        if flavor.own and len(pods) != 1:
            return [dict.fromkeys(names, "")]
        if not pods:
            return [{}]
        copies = [dict(zip(names, (self.namespace, pod, self.containers[pod][0]), strict=True)) for pod in pods]
        if flavor.uid:
            copies = [each | {flavor.uid: self.uids[pod][0][0]} for each, pod in zip(copies, pods, strict=True)]
        return copies if len(copies) == 1 else [each | {"vgpu": str(n)} for n, each in enumerate(copies)]

    def _add_samples(self, flavor: Flavor, gpu: Gpu, exposed: Labels, target: Labels) -> None:
        labels = stored(exposed, target, honor=flavor.honor)
        if gpu.engine is not None:
            self.fixture.add(flavor.engine, labels, gpu.engine)
        if gpu.util is not None:
            self.fixture.add(flavor.util, labels, always(gpu.util if flavor.percent else gpu.util / 100))
        if gpu.encoder is not None:
            self.fixture.add("DCGM_FI_DEV_ENC_UTIL", labels, always(gpu.encoder))
            self.fixture.add("DCGM_FI_DEV_DEC_UTIL", labels, always(0))

    def _add_allocations(self, flavor: Flavor, gpu: Gpu, device: Labels, target: Labels) -> None:
        device = {name: value for name, value in device.items() if name != flavor.host} | {"node": self.node}

        def add(name: str, exposed: Labels, values: str) -> None:
            self.fixture.add(name, stored({**device, **exposed}, target, honor=flavor.honor), values)

        add("gpugauge_device_info", {"model": "NVIDIA-H100"}, gpu.present)
        identity = {name: device[name] for name in ("UUID", "GPU_I_ID", "node")}
        if (busy := gpu.busy) is not None:
            self.fixture.add("gpugauge_device_busy_ratio", stored(identity, target, honor=flavor.honor), busy)
        if not gpu.allocation_unknown:
            add(
                "gpugauge_device_allocated_pods",
                {},
                gpu.present.replace("1", str(len(gpu.pods) + gpu.unlisted_pods), 1),
            )
        for pod in gpu.pods:
            for container in self.containers[pod]:
                ids = {"namespace": self.namespace, "pod": pod, "container": container}
                ids |= {f"gpu_{key}": value for key, value in ids.items()} | {"resource": "nvidia_com_gpu"}
                if self.workloads[pod]:
                    ids |= {"workload": self.workloads[pod], "workload_type": "CronJob"}
                for uid, values in self.uids[pod]:
                    alive = gpu.present if values == always(1) else values
                    add("gpugauge_allocation_info", {**ids, "gpu_pod_uid": uid, "sharing": "exclusive"}, alive)
        alone = len(gpu.pods) == 1 and not gpu.unlisted_pods and not gpu.allocation_unknown
        if alone and busy is not None:
            containers = self.containers[gpu.pods[0]]
            ids = {"namespace": self.namespace, "pod": gpu.pods[0]}
            ids["container"] = containers[0] if len(containers) == 1 else ""
            ids |= {f"gpu_{key}": value for key, value in ids.items()}
            self.fixture.add(
                "gpugauge_allocation_busy_ratio", stored({**identity, **ids}, target, honor=flavor.honor), busy
            )
