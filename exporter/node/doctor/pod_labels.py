"""Checks of what pods see of the devices: whether they are offered to pods, and why series have no labels of a pod."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.matching.attribute import AllocationState, attribute
from exporter.node.attribution.matching.device_lookup import DeviceLookup
from exporter.node.attribution.offer.offer import Offer, offered_devices, unmatched_offer
from exporter.node.attribution.pods.joined_allocations import joined
from exporter.node.devices.entities.device import Device
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, note, ok, skipped
from exporter.node.doctor.kubernetes import NOT_ASKED, unmatched_findings
from exporter.node.doctor.label_reasons import PodLabelReason
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.doctor.sources import NO_READINGS
from exporter.source import SourceError

SHOWN = 3


def _offered(examination: Examination) -> Iterable[Finding]:
    offered, readings = examination.offered, examination.readings
    if not examination.config.kubernetes or offered is None:
        return [skipped("the kubelet does not say" if examination.config.kubernetes else NOT_ASKED)]
    if isinstance(offered, SourceError):
        return [note(str(offered), KubeletReason.ALLOCATABLE_UNREADABLE)]
    if readings is None:
        return [skipped(NO_READINGS)]
    rules = examination.config.attribution_rules
    states = offered_devices(readings.inventory, Offer(offered, offered), rules.indexed, readings.down)
    missing = [device for device, state in zip(readings.inventory, states, strict=True) if state is False]
    unmatched = unmatched_offer(readings.inventory, offered, rules.indexed, readings.down)
    found = [note(_named(missing, len(states)), DoctorReason.DEVICES_NOT_OFFERED)] if missing else []
    found += unmatched_findings((reason, *each, "") for each, reason in unmatched)
    return found or [ok(f"{states.count(True)} devices are offered to pods")]


def _labels(examination: Examination) -> Iterable[Finding]:
    everywhere = _missing_everywhere(examination)
    if everywhere is not None:
        return [note("no series has them", everywhere)]
    if examination.readings is None:
        return [skipped(NO_READINGS)]
    return _by_reason(examination)


def _missing_everywhere(examination: Examination) -> PodLabelReason | None:
    config = examination.config
    if not config.kubernetes:
        return PodLabelReason.ATTRIBUTION_OFF
    if examination.kubelet is None or isinstance(examination.kubelet, SourceError):
        return PodLabelReason.KUBELET_DOWN
    return None if config.style.allocation_labels else PodLabelReason.LABELS_OFF


def _by_reason(examination: Examination) -> Iterator[Finding]:
    """One finding for the devices whose series have all labels of a pod, and one for each reason of the others."""
    readings, rules = examination.readings, examination.config.attribution_rules
    assert readings is not None
    inventory, down = readings.inventory, readings.down
    found = attribute(inventory, _allocations(examination), rules, down, examination.claims)
    lookup = DeviceLookup(inventory, down)
    missing: dict[PodLabelReason, list[Device]] = defaultdict(list)
    for position, (device, state) in enumerate(zip(inventory, found.states, strict=True)):
        reason = _missing(state, partitioned=bool(lookup.partitions(position)))
        if reason is not None:
            missing[reason].append(device)
    labeled = len(inventory) - sum(map(len, missing.values()))
    yield ok(f"{labeled} of {len(inventory)} devices have those of a container")
    for reason in PodLabelReason:
        if reason in missing:
            yield note(_named(missing[reason], len(inventory)), reason)


def _allocations(examination: Examination) -> Allocations:
    """What the kubelet lists, with what is known of the pods where pod metadata is on."""
    listed, pods = examination.kubelet, examination.pods
    assert listed is not None
    assert not isinstance(listed, SourceError)
    if pods is None or isinstance(pods, SourceError):
        return listed
    return joined(listed, pods, examination.config.attribution_rules.reservation_namespaces)


def _missing(state: AllocationState, *, partitioned: bool) -> PodLabelReason | None:
    """Why a device has not all labels of a container; None where it has."""
    if state.container.pod:
        return None if state.container.container else PodLabelReason.SEVERAL_CONTAINERS
    if partitioned:
        return PodLabelReason.PARTITIONED
    if state.sharing is None:
        return PodLabelReason.UNALLOCATED if state.pods == 0 else PodLabelReason.UNCERTAIN
    if state.sharing == "unknown":
        return PodLabelReason.CONFLICTING
    return PodLabelReason.RESERVED if state.pods is None else PodLabelReason.SHARED


def _named(devices: list[Device], of: int) -> str:
    some = ", ".join(map(_name, devices[:SHOWN]))
    more = f" and {len(devices) - SHOWN} more" if len(devices) > SHOWN else ""
    return f"{len(devices)} of {of}: {some}{more}"


def _name(device: Device) -> str:
    instance = f" instance {device.gi}" if device.gi >= 0 else ""
    compute = f" compute instance {device.ci}" if device.ci >= 0 else ""
    return f"GPU {device.index}{instance}{compute}"


CHECKS = (Check("kubernetes", "offered devices", _offered), Check("kubernetes", "pod labels", _labels))
