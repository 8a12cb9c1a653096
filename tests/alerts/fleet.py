"""Pages of exporters and watchers as Prometheus stores them: labels of the page merged with those of the target."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.alerts.promtool import Scene

LONG = "x180"
"""Ninety minutes of a constant."""

Labels = Mapping[str, str]


def always(value: float | str) -> str:
    return f"{value}{LONG}"


@dataclass(frozen=True)
class Flavour:
    """Which exporter's page, how it is scraped, and how it spells things."""

    name: str
    honor: bool
    own: bool = True
    host: str = "hostname"
    uuid: str = "UUID"
    engine: str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    util: str = "DCGM_FI_DEV_GPU_UTIL"
    percent: bool = True
    holder: tuple[str, str, str] = ("namespace", "pod", "container")
    cluster: str = ""
    uid: str = ""
    """The label in which a stock page gives the holder's uid, where it does."""
    pod_targets: bool = True
    """Whether the target carries namespace, pod, container and node of the exporter, as monitors set them."""


FLAVOURS = (
    Flavour("own-true", honor=True),
    Flavour("own-false", honor=False, cluster="west"),
    Flavour("own-static", honor=False, pod_targets=False),
    Flavour("stock482-true", honor=True, own=False, host="Hostname"),
    Flavour("stock483-false", honor=False, own=False, uid="pod_uid"),
    Flavour(
        "stock49-false",
        honor=False,
        own=False,
        engine="DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
        util="DCGM_FI_DEV_GPU_UTIL_RATIO",
        percent=False,
    ),
    Flavour(
        "stock-old-names",
        honor=True,
        own=False,
        host="Hostname",
        uuid="uuid",
        holder=("pod_namespace", "pod_name", "container_name"),
        pod_targets=False,
    ),
)


def stored(page: Labels, target: Labels, *, honor: bool) -> dict[str, str]:
    """What Prometheus keeps: with honor_labels a page's label wins, an empty one included; else it is exported_…."""
    if honor:
        return {**target, **page}
    moved = {f"exported_{name}" if name in target else name: value for name, value in page.items() if value}
    return {**moved, **target}


@dataclass(frozen=True)
class Pod:
    name: str = "p"
    cls: str = "training"
    start: str = always(0)
    phases: Mapping[str, str] | None = None
    override: float | None = None
    opted_out: str = ""
    watchers: int = 1
    ksm: int = 0
    ksm_phase: str = "Running"
    uids: tuple[tuple[str, str], ...] = (("uid-1", always(1)),)
    containers: tuple[str, ...] = ("main",)
    owner_on_page: str = ""
    """The workload, where the node exporter knows it itself."""
    priorities: tuple[str, ...] = ("", "")
    """What each watcher says of the pod's priority class."""
    without_gpu: bool = False


@dataclass(frozen=True)
class Card:
    engine: str | None = None
    util: float | None = None
    encoder: float | None = None
    gi: str = ""
    holders: tuple[str, ...] = ("p",)
    present: str = always(1)
    board: int | None = None
    extra_flavour: Flavour | None = None
    """A second exporter on the node that shows the same card."""
    extra_holder: str = ""
    unattributed: bool = False
    """The kubelet did not answer: our page says neither who holds the card nor that nobody does."""
    unlisted_holders: int = 0
    """Holders that are counted and whose pods nobody could name."""


class Node:
    """One node of one flavour, with what runs on it, in a namespace of its own."""

    def __init__(self, scene: Scene, flavour: Flavour, name: str, cluster: str | None = None) -> None:
        self.scene, self.flavour = scene, flavour
        self.namespace = f"{flavour.name}-{name}"
        self.node = f"node-{self.namespace}"
        self.cluster = flavour.cluster if cluster is None else cluster
        self.uids: dict[str, tuple[tuple[str, str], ...]] = {}
        self.containers: dict[str, tuple[str, ...]] = {}
        self.owners: dict[str, str] = {}

    def workload(self, pod: Pod) -> dict[str, str]:
        """The labels that an alert on the pod must carry."""
        workload, kind = pod.name, "pod"
        if pod.owner_on_page and self.flavour.own:
            workload, kind = pod.owner_on_page, "CronJob"
        if pod.watchers:
            workload, kind = f"job-{pod.name}", "Job"
        return {"pod": pod.name, "node": self.node, "workload": workload, "workload_type": kind}

    def target(self, flavour: Flavour, suffix: str = "") -> dict[str, str]:
        job = "gpugauge-node" if flavour.own else "nvidia-dcgm-exporter"
        labels = {"job": job, "instance": f"{self.node}:9400{suffix}", "cluster": self.cluster}
        if flavour.own and flavour.pod_targets:
            labels["node"] = self.node
        if flavour.pod_targets:
            labels |= {"namespace": "monitoring", "pod": f"exporter-{self.node}{suffix}", "container": "exporter"}
        return labels

    def up(self, value: str = always(1)) -> None:
        self.scene.add("up", self.target(self.flavour), value)

    def pod(self, pod: Pod) -> None:
        self.uids[pod.name], self.containers[pod.name] = pod.uids, pod.containers
        self.owners[pod.name] = pod.owner_on_page
        for number in range(pod.watchers):
            self._watch(pod, number)
        for number in range(pod.ksm):
            self._state(pod, number)

    def opt_out_namespace(self, alert: str) -> None:
        page = {"namespace": self.namespace, "gpu_namespace": self.namespace, "alert": alert, "until": ""}
        self._add_watcher("gpugauge_namespace_alert_optout", page, always(1), 0)

    def card(self, number: int, card: Card) -> None:
        board = number if card.board is None else card.board
        self._card(self.flavour, board, card, "")
        if card.extra_flavour:
            self._card(card.extra_flavour, board, card, "-second")

    def _add_watcher(self, name: str, page: Labels, values: str, number: int) -> None:
        target = {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": self.cluster}
        if self.flavour.pod_targets:
            target |= {"namespace": "monitoring", "pod": f"watcher-{number}", "container": "watcher"}
        self.scene.add(name, stored(page, target, honor=self.flavour.honor), values)

    def _watch(self, pod: Pod, number: int) -> None:
        ids = {"namespace": self.namespace, "pod": pod.name, "gpu_namespace": self.namespace, "gpu_pod": pod.name}
        owner = {"node": self.node, "workload": f"job-{pod.name}", "workload_type": "Job", "class": pod.cls}
        owner["priority_class"] = pod.priorities[number]
        for uid, values in pod.uids:
            self._add_watcher("gpugauge_gpu_pod_info", {**ids, **owner, "gpu_pod_uid": uid}, values, number)
        self._add_watcher("gpugauge_gpu_pod_start_timestamp_seconds", ids, pod.start, number)
        for phase, values in (pod.phases or {"Running": always(1)}).items():
            self._add_watcher("gpugauge_gpu_pod_phase", {**ids, "phase": phase}, values, number)
        if pod.override is not None:
            name = "gpugauge_pod_low_utilization_threshold_ratio"
            self._add_watcher(name, ids, always(pod.override), number)
        if pod.opted_out:
            page = {**ids, "alert": pod.opted_out, "until": "2027-01-31"}
            self._add_watcher("gpugauge_pod_alert_optout", page, always(1), number)

    def _state(self, pod: Pod, number: int) -> None:
        labels = {"namespace": self.namespace, "pod": pod.name, "uid": "uid-1", "cluster": self.cluster}
        labels |= {"job": "kube-state-metrics", "instance": f"ksm-{number}:8080"}
        self.scene.add("kube_pod_start_time", labels, pod.start)
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            self.scene.add("kube_pod_status_phase", {**labels, "phase": phase}, always(int(phase == pod.ksm_phase)))

    def _card(self, flavour: Flavour, board: int, card: Card, suffix: str) -> None:
        device = {"gpu": str(board), flavour.uuid: f"GPU-{self.namespace}-{board}", flavour.host: self.node}
        device |= {"GPU_I_ID": card.gi, "GPU_I_PROFILE": "1g.10gb" if card.gi else ""}
        holders = (card.extra_holder,) if suffix and card.extra_holder else card.holders
        target = self.target(flavour, suffix)
        for page in self._held_by(flavour, holders):
            self._readings(flavour, card, {**device, "modelName": "NVIDIA H100", **page}, target)
        if flavour.own:
            self._mapping(flavour, card, device, target)

    def _held_by(self, flavour: Flavour, holders: tuple[str, ...]) -> list[dict[str, str]]:
        """One page's holder labels: ours names an exclusive holder or none; a stock page clones per sharer."""
        names = flavour.holder
        if flavour.own and len(holders) != 1:
            return [dict.fromkeys(names, "")]
        if not holders:
            return [{}]
        clones = [dict(zip(names, (self.namespace, pod, self.containers[pod][0]), strict=True)) for pod in holders]
        if flavour.uid:
            clones = [clone | {flavour.uid: self.uids[pod][0][0]} for clone, pod in zip(clones, holders, strict=True)]
        return clones if len(clones) == 1 else [clone | {"vgpu": str(n)} for n, clone in enumerate(clones)]

    def _readings(self, flavour: Flavour, card: Card, page: Labels, target: Labels) -> None:
        labels = stored(page, target, honor=flavour.honor)
        if card.engine is not None:
            self.scene.add(flavour.engine, labels, card.engine)
        if card.util is not None:
            self.scene.add(flavour.util, labels, always(card.util if flavour.percent else card.util / 100))
        if card.encoder is not None:
            self.scene.add("DCGM_FI_DEV_ENC_UTIL", labels, always(card.encoder))
            self.scene.add("DCGM_FI_DEV_DEC_UTIL", labels, always(0))

    def _mapping(self, flavour: Flavour, card: Card, device: Labels, target: Labels) -> None:
        def add(name: str, page: Labels, values: str) -> None:
            self.scene.add(name, stored({**device, **page}, target, honor=flavour.honor), values)

        add("gpugauge_device_info", {"model": "NVIDIA-H100"}, card.present)
        if not card.unattributed:
            add(
                "gpugauge_device_holders",
                {},
                card.present.replace("1", str(len(card.holders) + card.unlisted_holders), 1),
            )
        for pod in card.holders:
            for container in self.containers[pod]:
                ids = {"namespace": self.namespace, "pod": pod, "container": container}
                ids |= {f"gpu_{key}": value for key, value in ids.items()} | {"resource": "nvidia_com_gpu"}
                if self.owners[pod]:
                    ids |= {"workload": self.owners[pod], "workload_type": "CronJob"}
                for uid, values in self.uids[pod]:
                    alive = card.present if values == always(1) else values
                    add("gpugauge_allocation_info", {**ids, "gpu_pod_uid": uid, "sharing": "exclusive"}, alive)
