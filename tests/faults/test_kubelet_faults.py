"""Faults of the kubelet's PodResources API: the GPUs are read, their allocations are kept for a minute."""

import math

import grpc
import pytest

from exporter.backoff import LONGEST_PAUSE
from exporter.node.attribution.allocation import KEEP_SECONDS, LastKnownAllocations
from exporter.node.attribution.kubelet.reason import (
    ANSWER_BYTES,
    DEADLINE_SECONDS,
    EMPTY_LIST_SECONDS,
    MAX_ALLOCATIONS,
    KubeletReason,
)
from exporter.node.attribution.kubelet_api.podresources_pb2 import ContainerDevices, ListPodResourcesResponse
from exporter.node.attribution.offer.reader import EVERY_SECONDS, LONGEST_PAUSE_SECONDS, OfferReader
from exporter.node.simulation.scenario import load
from exporter.source import SourceError
from simulators.kubelet import NORMAL, RATE_LIMITED, ListBehavior
from tests.clock import Clock
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.exporter.node.scenario_flow import SimulatedFlow
from tests.faults.fault import Exposed, Fault, as_before, fault
from tests.faults.programs import collecting
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
GPU, ALLOCATABLE = "nvidia.com/gpu", "gpugauge_device_allocatable"


def kubelet_down(reason):
    """The samples while the kubelet cannot be read and everything else is as before."""
    up = 'gpugauge_source_up{source="dcgm"} 1'
    down = f'gpugauge_source_problem{{source="kubelet",reason="{reason}"}} 1'
    return 'gpugauge_source_up{source="kubelet"} 0', down, up, "gpugauge_allocation_info 1"


def settled(node):
    """The exposition of a running exporter that has read its devices and their allocations."""
    return Exposed(node.wait_until_up().text)


def dcgm(exposed):
    """The DCGM-named series, with their pod labels."""
    return {sample for sample in exposed.state() if sample[0].startswith("DCGM_")}


def assert_shown_and_recovered(row, node, before, mend):
    """The fault is shown, pod labels stay, and after `mend` everything is as before."""
    assert dcgm(row.wait_until_shown(node.scraper.get)) == dcgm(before)
    mend()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)
    assert node.process.poll() is None


@fault(name="The kubelet is stopped, or its socket is not mounted", shows=kubelet_down("socket_missing"))
def test_while_the_kubelet_is_down_its_allocations_are_kept_until_it_is_found_again(exporter, row):
    node = exporter()
    before = settled(node)
    node.kubelet.stop()
    assert_shown_and_recovered(row, node, before, node.kubelet.start)


@fault(
    name="The kubelet has crashed and left its socket behind", shows=kubelet_down("unavailable"), pause=LONGEST_PAUSE
)
def test_a_kubelet_that_left_its_socket_behind_is_unavailable(exporter, row):
    node = exporter()
    before = settled(node)
    node.kubelet.stop(leave_socket=True)
    assert_shown_and_recovered(row, node, before, node.kubelet.start)


def answer_of(allocations):
    """An answer with so many GPUs, all of one container."""
    entry = ContainerDevices(resource_name="nvidia.com/gpu", device_ids=[f"GPU-{n}" for n in range(allocations)])
    answer = ListPodResourcesResponse()
    answer.pod_resources.add(name="train").containers.add(name="main", devices=[entry.SerializeToString()])
    return answer


def broken_answer():
    """An answer in which a device cannot be decoded."""
    answer = ListPodResourcesResponse()
    answer.pod_resources.add(name="train").containers.add(name="main", devices=[b"\xff"])
    return answer


CALLS = (
    (
        ListBehavior(code=grpc.StatusCode.RESOURCE_EXHAUSTED, details=RATE_LIMITED),
        Fault("Another client uses up the kubelet's limit on calls", kubelet_down("rate_limited"), pause=LONGEST_PAUSE),
    ),
    (
        ListBehavior(padding=ANSWER_BYTES),
        Fault(
            f"The kubelet's answer is larger than {ANSWER_BYTES // 2**20} MiB",
            kubelet_down("too_large"),
            pause=LONGEST_PAUSE,
        ),
    ),
    (
        ListBehavior(response=answer_of(MAX_ALLOCATIONS + 1)),
        Fault(
            f"The kubelet lists more than {MAX_ALLOCATIONS} allocations of GPUs",
            kubelet_down("too_many_allocations"),
            pause=LONGEST_PAUSE,
        ),
    ),
    (
        ListBehavior(response=broken_answer()),
        Fault("The kubelet's answer cannot be decoded", kubelet_down("invalid_answer"), pause=LONGEST_PAUSE),
    ),
    (
        ListBehavior(code=grpc.StatusCode.PERMISSION_DENIED),
        Fault("The kubelet's socket may not be used", kubelet_down("no_permission"), pause=LONGEST_PAUSE),
    ),
    (
        ListBehavior(response=ListPodResourcesResponse()),
        Fault(
            f"The kubelet has restarted and lists no pod yet (accepted after {EMPTY_LIST_SECONDS:.0f} s)",
            kubelet_down("starting"),
        ),
    ),
)
BEHAVIORS = {row.name: behavior for behavior, row in CALLS}


@fault(*(row for _, row in CALLS))
def test_a_call_that_fails_keeps_the_allocations_and_is_repeated(exporter, row):
    node = exporter()
    before = settled(node)
    node.kubelet.behavior = BEHAVIORS[row.name]
    assert_shown_and_recovered(row, node, before, lambda: setattr(node.kubelet, "behavior", NORMAL))


@pytest.mark.slow
@fault(
    name="The kubelet does not answer",
    shows=kubelet_down("timeout"),
    pause=DEADLINE_SECONDS + LONGEST_PAUSE,
)
def test_while_the_kubelet_never_answers_its_deadline_is_reported_and_devices_are_read(exporter, row):
    node = exporter()
    before = settled(node)
    node.kubelet.behavior = ListBehavior(delay=math.inf)
    assert_shown_and_recovered(row, node, before, lambda: setattr(node.kubelet, "behavior", NORMAL))


@fault(
    name=f"The kubelet cannot be read for more than {KEEP_SECONDS:.0f} s, whatever the reason",
    shows=(
        'gpugauge_source_up{source="kubelet"} 0',
        'gpugauge_source_up{source="simulated"} 1',
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    absent=("gpugauge_allocation_info", "gpugauge_device_allocated_pods"),
)
def test_allocations_that_are_too_old_are_unknown(row):
    clock = Clock()
    flow = SimulatedFlow("mig", last_known=LastKnownAllocations(clock=clock))
    with collecting(flow.flow.pipeline.collect) as get:
        until(lambda: Exposed(get("/metrics")[1]).named("gpugauge_allocation_info"))
        flow.kubelet.reason = "unavailable"
        clock.now += KEEP_SECONDS + 1
        shown = row.wait_until_shown(get)
        assert not any(labels.get("pod") for name, labels, _ in shown.samples if name.startswith("DCGM_"))
        flow.kubelet.reason = ""
        row.wait_until_recovered(get, lambda exposed: bool(exposed.named("gpugauge_allocation_info")), INTERVAL)


@fault(
    name="The kubelet lists a device that is not there, such as a MIG device that was made again",
    shows=(
        'gpugauge_unmatched_device_ids{resource="nvidia_com_mig_1g_10gb",reason="no_such_instance"} 1',
        'gpugauge_source_up{source="kubelet"} 1',
    ),
    recovery="once the device plugin has listed its devices again",
)
def test_an_id_that_names_no_device_is_counted(exporter, row):
    node = exporter()
    before = settled(node)
    answer = ListPodResourcesResponse()
    entry = ContainerDevices(resource_name="nvidia.com/mig-1g.10gb", device_ids=["MIG-0"]).SerializeToString()
    answer.pod_resources.add(name="train").containers.add(name="main", devices=[entry])
    node.kubelet.behavior = ListBehavior(response=answer)
    row.wait_until_shown(node.scraper.get)
    node.kubelet.behavior = NORMAL
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


class OfferingFlow:
    """A node of the scenario `whole` whose kubelet offers what `answer` is, or fails with it as the reason."""

    def __init__(self):
        self.clock = Clock()
        self.uuids = [device.uuid for device in load("whole").document.devices]
        self.answer = frozenset((GPU, uuid) for uuid in self.uuids)
        offer = OfferReader(self.ask, KubeletReason.ALLOCATABLE_UNREADABLE, self.clock)
        self.collect = SimulatedFlow("whole", offer=offer).flow.pipeline.collect

    def ask(self):
        if isinstance(self.answer, str):
            raise SourceError(self.answer, "this failure was set by a test")
        return self.answer

    def offers_all(self, exposed):
        """Whether every GPU is offered; a minute more has passed."""
        self.clock.now += EVERY_SECONDS
        return [v for name, _, v in exposed.samples if name == ALLOCATABLE] == [1] * len(self.uuids)


@fault(
    name="A device plugin calls a GPU unhealthy, as after a critical XID, or offers it no more",
    shows=(f"{ALLOCATABLE} 0", f"{ALLOCATABLE} 1", "gpugauge_device_up 1", 'gpugauge_source_up{source="kubelet"} 1'),
    recovery=f"at most {EVERY_SECONDS:.0f} s after it is offered again: once the device plugin has been restarted",
)
def test_a_gpu_that_the_kubelet_does_not_offer_is_shown(row):
    flow = OfferingFlow()
    with collecting(flow.collect) as get:
        until(lambda: flow.offers_all(Exposed(get("/metrics")[1])))
        everything, flow.answer = flow.answer, flow.answer - {(GPU, flow.uuids[3])}
        flow.clock.now += EVERY_SECONDS
        until(lambda: len([1 for n, _, _ in Exposed(get("/metrics")[1]).samples if n == ALLOCATABLE]) == 7)
        flow.clock.now += EVERY_SECONDS
        shown = row.wait_until_shown(get)
        assert shown.value(ALLOCATABLE, UUID=flow.uuids[3]) == 0
        flow.answer = everything
        row.wait_until_recovered(get, flow.offers_all, INTERVAL)


@fault(
    name="The kubelet does not say which devices it offers to pods",
    shows=(
        'gpugauge_source_problem{source="kubelet",reason="allocatable_unreadable"} 1',
        'gpugauge_source_up{source="kubelet"} 1',
        "gpugauge_allocation_info 1",
    ),
    absent=(ALLOCATABLE,),
    pause=LONGEST_PAUSE_SECONDS,
)
def test_what_is_offered_is_absent_while_it_cannot_be_asked_and_costs_nothing_else(row):
    flow = OfferingFlow()
    everything, flow.answer = flow.answer, "timeout"
    with collecting(flow.collect) as get:
        row.wait_until_shown(get)
        flow.answer = everything
        row.wait_until_recovered(get, flow.offers_all, INTERVAL)
