"""Faults while the driver is unbound from a GPU, as to give it to a virtual machine: no GPU stays open for long."""

import pytest

from exporter.node.simulation.document import CallFault, GpuLoss
from exporter.node.simulation.scenario import load
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.fakes.build import build
from tests.faults.fault import Exposed, Fault, as_before, fault
from tests.faults.test_source_faults import NO_DEVICES, TIMINGS, VALUES, down
from tests.opened_gpus import opened_gpus
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
FIRST = load("whole").document.devices[0].uuid
RELEASE_SECONDS = 5.0
"""Within how many seconds no GPU is open any more."""


def started(exporter, source):
    """An exporter that has read every value, and what it exposes."""
    if source == "nvml":
        node = exporter("nvml", scenario="whole")
    else:
        node = exporter(embedded=True, scenario="whole", ready=False)
        node.kubelet.start()
        build(node.libraries)
        node.wait_until_up()
    before = Exposed(node.wait_for(lambda s: len(s.measured()) >= VALUES, "every value").text)
    assert len(opened_gpus(node.process.pid)) >= 8
    return node, before


def unbind(node, *events, for_=None):
    """Unbind the driver from the first GPU now, for so many seconds, and wait until no GPU is open."""
    node.set_events(*events, GpuLoss(FIRST, node.scenario_time() + 0.5, for_, state="detached"))
    until(lambda: node.table.scenario.at(node.scenario_time()).unbinds)
    until(lambda: opened_gpus(node.process.pid) == [], RELEASE_SECONDS)


@fault(
    Fault(
        name="The driver is unbound from a GPU while NVML is read",
        shows=down("nvml", "driver_unbound"),
        absent=NO_DEVICES,
        pause=TIMINGS.unbound,
        collections=2,
    ),
    Fault(
        name="The driver is unbound from a GPU while an embedded engine before DCGM 4.5 is read",
        shows=down("dcgm", "driver_unbound"),
        absent=NO_DEVICES,
        pause=TIMINGS.unbound,
        collections=2,
    ),
)
def test_every_gpu_is_let_go_of_within_seconds_and_read_again_once_it_is_bound(exporter, row):
    node, before = started(exporter, "nvml" if "NVML" in row.name else "dcgm")
    unbind(node, for_=2.0)
    row.wait_until_shown(node.scraper.get)
    assert opened_gpus(node.process.pid) == []
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


@fault(
    name="The driver is unbound from a GPU while a call of NVML for it hangs",
    shows=down("nvml", "driver_unbound"),
    absent=NO_DEVICES,
    pause=TIMINGS.unbound,
    collections=2,
)
def test_every_gpu_is_let_go_of_within_seconds_while_a_call_hangs(exporter, row):
    node, before = started(exporter, "nvml")
    unbind(node, CallFault("nvmlDeviceGetTemperatureV", hang=True, device=FIRST))
    row.wait_until_shown(node.scraper.get)
    assert opened_gpus(node.process.pid) == []
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


@fault(
    name="A GPU has no driver any more: 10 s after it was unbound, the others are read again",
    shows=(
        "gpugauge_device_up 0",
        "gpugauge_devices_observed 7",
        "gpugauge_devices_expected 8",
        'gpugauge_source_up{source="nvml"} 1',
    ),
    recovery="at once where the driver reports that it is bound to the GPU again, else at most 60 s",
)
def test_the_other_gpus_are_read_again_while_one_has_no_driver(exporter, row):
    node, before = started(exporter, "nvml")
    unbind(node, for_=15.0)
    shown = row.wait_until_shown(node.scraper.get)
    assert shown.value("gpugauge_device_up", UUID=FIRST) == 0
    assert not any(labels.get("UUID") == FIRST for name, labels, _ in shown.samples if name.startswith("DCGM_"))
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)
