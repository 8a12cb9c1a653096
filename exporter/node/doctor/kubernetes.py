"""Checks of a Kubernetes node: the kubelet's socket, the device plugin's, and allocations that match no device."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.matching.device_id import parse, placed_by_scheduler, reference
from exporter.node.attribution.matching.device_lookup import DeviceLookup, Unmatched, UnmatchedReason
from exporter.node.dcgm.host_engine.address import Address
from exporter.node.dcgm.host_engine.probe import refusal
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, limited, ok, skipped
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.doctor.sources import NO_READINGS
from exporter.source import SourceError

PLUGINS = "device-plugins"
DRA = "plugins/gpu.nvidia.com/dra.sock"
"""The socket of NVIDIA's DRA driver, which makes a device plugin unnecessary. Both are below the kubelet's folder."""
CONNECT_SECONDS = 1.0
SHOWN = 3
_NO_LOSS = {UnmatchedReason.UNRESOLVED_CLAIM, UnmatchedReason.OTHER_VENDOR}
"""Reasons of ids that no device has to match, or that nobody can mend."""
NOT_ASKED = "--kubernetes is not given"


def _kubelet(examination: Examination) -> Iterable[Finding]:
    kubelet = examination.kubelet
    if kubelet is None:
        return [skipped(NOT_ASKED)]
    if isinstance(kubelet, SourceError):
        return [failed(KubeletReason.of(kubelet.reason), f"{examination.config.kubelet_socket}: {kubelet}")]
    pods = len({(each.namespace, each.pod) for each in kubelet})
    return [ok(f"it answers: {len(kubelet)} allocated devices of {pods} pods")]


def _device_plugin(examination: Examination) -> Iterable[Finding]:
    if not examination.config.kubernetes:
        return [skipped(NOT_ASKED)]
    root, plugins = examination.root, _below_kubelet(examination, PLUGINS)
    if not root.exists(plugins):
        return [skipped(f"{plugins} cannot be seen from here: mount it to have it examined")]
    found = [name for name in root.names(plugins) if _of_gpus(name, examination.config.resource_names)]
    if not found:
        if root.exists(_below_kubelet(examination, DRA)):
            return [ok("NVIDIA's DRA driver has a socket; there is no device plugin")]
        others = [name for name in root.names(plugins) if name.endswith(".sock") and name != "kubelet.sock"]
        detail = f"{plugins} has {', '.join(others) if others else 'no plugin socket'}"
        return [failed(DoctorReason.DEVICE_PLUGIN_MISSING, detail)]
    refused = [name for name in found if refusal(_address(examination, name), CONNECT_SECONDS) is not None]
    if refused == found:
        return [failed(DoctorReason.DEVICE_PLUGIN_MUTE, ", ".join(found))]
    # The plugin of before may have left its socket beside that of now, as GKE's does, whose names have a time.
    return [ok(", ".join(name for name in found if name not in refused))]


def _below_kubelet(examination: Examination, path: str) -> str:
    return f"{examination.config.kubelet_root.rstrip('/')}/{path}"


def _of_gpus(name: str, resource_names: tuple[str, ...]) -> bool:
    """Whether a socket is that of a GPU plugin: NVIDIA's (nvidia-gpu.sock) and GKE's (nvidiaGPU-1700000000.sock).

    With further resource names, the plugin may be any.
    """
    return name.endswith(".sock") and name != "kubelet.sock" and ("nvidia" in name.lower() or bool(resource_names))


def _address(examination: Examination, name: str) -> Address:
    return Address(str(examination.root.path(_below_kubelet(examination, f"{PLUGINS}/{name}"))), is_unix=True)


def _allocations(examination: Examination) -> Iterator[Finding]:
    kubelet, readings = examination.kubelet, examination.readings
    if kubelet is None or isinstance(kubelet, SourceError):
        yield skipped(NOT_ASKED if kubelet is None else "the kubelet does not list them")
        return
    if readings is None:
        yield skipped(NO_READINGS)
        return
    lookup = DeviceLookup(readings.inventory, readings.down)
    indexed = examination.config.attribution_rules.indexed
    unmatched = [
        (found.reason, each.resource, each.device_id, f" of {each.namespace}/{each.pod}")
        for each in kubelet
        if isinstance(found := lookup.find(reference(each, indexed, examination.claims).target), Unmatched)
    ]
    yield from unmatched_findings(unmatched)
    if not unmatched:
        yield ok(f"all {len(kubelet)} match a device" if kubelet else "none")
    yield from _schedulers(kubelet, examination.config.reservation_namespaces)


def unmatched_findings(unmatched: Iterable[tuple[UnmatchedReason, str, str, str]]) -> Iterator[Finding]:
    """One finding for each reason and resource, of ids with their reason, resource, id, and whose they are."""
    grouped: dict[tuple[UnmatchedReason, str], list[str]] = defaultdict(list)
    for reason, resource, device_id, owner in unmatched:
        grouped[reason, resource].append(f"{device_id or '(empty)'}{owner}")
    for (reason, resource), ids in sorted(grouped.items()):
        number = f"{len(ids)} ids" if len(ids) > 1 else "1 id"
        yield limited(reason, f"{resource}: {number} without a device, such as {ids[0]}", works=reason in _NO_LOSS)


def _schedulers(allocations: Iterable[Allocation], reservation_namespaces: tuple[str, ...]) -> Iterator[Finding]:
    """What cannot be known because a scheduler gives out parts of GPUs."""
    placed = [each for each in allocations if placed_by_scheduler(each.resource, parse(each.device_id).share)]
    if placed:
        yield ok(f"a scheduler chooses the GPUs, and none counts as unallocated: {_listed(placed)}")
    if reserved := [each for each in allocations if each.namespace in reservation_namespaces]:
        yield ok(f"shared, with users that the kubelet does not list: {_listed(reserved)}")


def _listed(unmatched: list[Allocation]) -> str:
    some = ", ".join(f"{each.device_id} of {each.namespace}/{each.pod}" for each in unmatched[:SHOWN])
    return some + (f" and {len(unmatched) - SHOWN} more" if len(unmatched) > SHOWN else "")


CHECKS = (
    Check("kubernetes", "kubelet", _kubelet),
    Check("kubernetes", "device plugin", _device_plugin),
    Check("kubernetes", "allocations", _allocations),
)
