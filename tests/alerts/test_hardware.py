"""Alerts on hardware: XIDs, lost GPUs, heat and power supply, at their boundaries and with their texts."""

import pytest

from alerts.alerting import lost_gpus, thermal, xids
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, on_node, on_watcher, texts

pytestmark = pytest.mark.prometheus

HARDWARE = (lost_gpus.GROUP, xids.GROUP, thermal.GROUP)

CRITICAL, WARNING, APPLICATION = "GPUXidCritical", "GPUXidWarning", "GPUXidApplication"
LOST, HEAT, BRAKE, RACK = "GPULost", "GPUThermalThrottling", "GPUPowerBrake", "GPURackThrottled"


def _xid(fixture: RuleFixture, node: str, code: int, at: float, exposed: str) -> None:
    labels = {"node": node, "UUID": f"GPU-{node}", "gpu": "0", "xid": str(code)}
    on_node(fixture, "gpugauge_xid_last_timestamp_seconds", labels, f"{exposed}".replace("T", str(at)))


def test_an_xid_is_reported_at_once_by_its_class_for_as_long_as_it_is_recent(tmp_path):
    fixture = RuleFixture()
    for node, code in (("lost", 79), ("dbe", 48), ("contained", 94), ("new", 999), ("fault", 31), ("remap", 63)):
        _xid(fixture, node, code, 600, "_x20 Tx300")
    _xid(fixture, "never", 0, 0, "Tx300")
    for minute in (9.5, 10, 24):
        firing(fixture, CRITICAL, minute, "node", *(("lost", "dbe") if minute > 9.5 else ()))
        firing(fixture, WARNING, minute, "node", *(("contained", "new") if minute > 9.5 else ()))
        firing(fixture, APPLICATION, minute, "node", *(("fault",) if minute > 9.5 else ()))
    firing(fixture, CRITICAL, 50, "node", "lost", "dbe")
    firing(fixture, APPLICATION, 45, "node")
    for alert in (CRITICAL, WARNING, APPLICATION):
        firing(fixture, alert, 57, "node")
    check(tmp_path, fixture, groups=HARDWARE)


def test_an_old_xid_that_a_new_exporter_finds_is_not_reported(tmp_path):
    fixture = RuleFixture()
    _xid(fixture, "node-1", 79, 0, "_x59 Tx100")
    for minute in (30, 40):
        firing(fixture, CRITICAL, minute, "node")
    check(tmp_path, fixture, groups=HARDWARE)


def test_the_first_value_of_a_counter_without_a_time_is_reported_and_an_old_one_is_not(tmp_path):
    fixture = RuleFixture()
    for node, values in (
        ("first", "_x19 1x200"),
        ("from-zero", "0x19 1x200"),
        ("healthy", always(0)),
        ("old", "5x200"),
    ):
        on_node(fixture, "gpugauge_xid_errors_total", {"node": node, "UUID": f"GPU-{node}", "xid": "79"}, values)
    firing(fixture, CRITICAL, 10.5, "node", "first", "from-zero", "old")
    firing(fixture, CRITICAL, 60, "node")
    check(tmp_path, fixture, groups=HARDWARE)


def test_the_text_names_the_gpu_its_serial_its_place_and_its_pods(tmp_path):
    fixture = RuleFixture()
    gpu = {"node": "node-1", "UUID": "GPU-1"}
    info = {**gpu, "gpu": "3", "pci_bus_id": "00000000:18:00.0", "serial": "1652823450000", "model": "H100"}
    on_node(fixture, "gpugauge_device_info", info, "1x21 stale", cluster="west")
    on_node(fixture, "gpugauge_xid_last_timestamp_seconds", {**gpu, "xid": "79"}, "_x20 600x100", cluster="west")
    on_node(fixture, "gpugauge_xid_errors_total", {**gpu, "xid": "79"}, "0x20 1x9 3x90", cluster="west")
    pod = {**gpu, "gpu_namespace": "team-a", "gpu_pod": "train-0", "sharing": "exclusive"}
    on_node(fixture, "gpugauge_allocation_info", pod, always(1), cluster="west")
    on_watcher(
        fixture, "gpugauge_node_info", {"node": "node-1", "rack": "R12", "zone": "z1"}, always(1), cluster="west"
    )
    texts(
        fixture,
        CRITICAL,
        20,
        {"cluster": "west", **gpu, "xid": "79"},
        "XID 79 on GPU GPU-1 of node node-1: it needs repair.",
        "GPU GPU-1 of node node-1 (index 3, PCI address 00000000:18:00.0, serial 1652823450000), rack R12, zone z1 had "
        "XID 79 3 times within an hour: it cannot be used until it is reset, or its node restarted or repaired. "
        "Allocated to pod team-a/train-0",
    )
    check(tmp_path, fixture, groups=HARDWARE)


def test_application_faults_of_one_namespace_on_three_nodes_are_the_programs(tmp_path):
    fixture = RuleFixture()
    for number in range(5):
        gpu = {"node": f"node-{number}", "UUID": f"GPU-{number}"}
        on_node(fixture, "gpugauge_xid_last_timestamp_seconds", {**gpu, "xid": "31"}, "_x20 600x300")
        namespace = "wide" if number < 3 else "narrow"
        pod = {**gpu, "gpu_namespace": namespace, "gpu_pod": f"p-{number}", "sharing": "exclusive"}
        on_node(fixture, "gpugauge_allocation_info", pod, always(1))
    firing(fixture, "GPUXidSameNamespaceManyNodes", 19, "gpu_namespace")
    firing(fixture, "GPUXidSameNamespaceManyNodes", 21, "gpu_namespace", "wide")
    check(tmp_path, fixture, groups=HARDWARE)


def test_a_page_of_a_node_in_planned_maintenance_is_a_digest_also_while_the_watcher_is_away(tmp_path):
    fixture = RuleFixture()
    for node in ("working", "maintained", "cordoned"):
        _xid(fixture, node, 79, 600, "_x20 Tx300")
    for node, reason in (("maintained", "planned"), ("cordoned", "cordon")):
        on_watcher(fixture, "gpugauge_node_maintenance", {"node": node, "reason": reason}, "1x19 stale")
    wanted = ({"node": "working", "notify": "page"}, {"node": "maintained", "notify": "digest"})
    fixture.expect(
        f'count by (node, notify) (ALERTS{{alertname="{CRITICAL}", alertstate="firing"}})',
        12,
        *((labels, 1.0) for labels in (*wanted, {"node": "cordoned", "notify": "page"})),
    )
    check(tmp_path, fixture, groups=HARDWARE)


def _device(fixture: RuleFixture, node: str, up: str, *, expected: int = 8, observed: int = 8) -> None:
    on_node(fixture, "gpugauge_device_up", {"node": node, "UUID": f"GPU-{node}", "gpu": "0"}, up)
    on_node(fixture, "gpugauge_devices_expected", {"node": node}, always(expected))
    on_node(fixture, "gpugauge_devices_observed", {"node": node}, always(observed))


def test_f7_a_gpu_that_cannot_be_read_or_is_missing_is_lost(tmp_path):
    """7 of 8 GPUs, a GPU that is known and not readable (once, not twice), and nodes on which that is expected."""
    fixture = RuleFixture()
    _device(fixture, "whole", always(1))
    _device(fixture, "unreadable", "1x19 0x200", observed=7)
    _device(fixture, "missing", always(1), observed=7)
    _device(fixture, "upgraded", always(0), observed=0)
    _device(fixture, "shortly", "1x19 0x15 1x100")
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "upgraded", "reason": "driver_upgrade"}, always(1))
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "missing", "reason": "cordon"}, always(1))
    for minute, found in (
        (9, ()),
        (19, ("missing",)),
        (21, ("missing", "unreadable")),
        (60, ("missing", "unreadable")),
    ):
        firing(fixture, LOST, minute, "node", *found)
    check(tmp_path, fixture, groups=HARDWARE)


def test_a_gpu_that_a_virtual_machine_has_is_not_lost(tmp_path):
    fixture = RuleFixture()
    _device(fixture, "allocated", always(0), observed=7)
    passed = {"node": "allocated", "UUID": "GPU-allocated", "sharing": "passthrough"}
    on_node(fixture, "gpugauge_allocation_info", passed, always(1))
    _device(fixture, "offered", always(1), observed=6)
    offered = {"node": "offered", "resource": "nvidia_com_GA102GL_A10"}
    on_watcher(fixture, "gpugauge_node_gpu_capacity", offered, always(2))
    _device(fixture, "without-watcher", always(1), observed=7)
    unmatched = {"node": "without-watcher", "resource": "nvidia_com_GA102GL_A10", "reason": "no_such_gpu"}
    on_node(fixture, "gpugauge_unmatched_device_ids", unmatched, always(1))
    _device(fixture, "lost-beside", always(1), observed=5)
    on_watcher(fixture, "gpugauge_node_gpu_capacity", {**offered, "node": "lost-beside"}, always(2))
    firing(fixture, LOST, 30, "node", "lost-beside")
    check(tmp_path, fixture, groups=HARDWARE)


def test_the_text_of_missing_gpus_has_their_number(tmp_path):
    fixture = RuleFixture()
    _device(fixture, "node-1", always(1), observed=6)
    texts(
        fixture,
        LOST,
        20,
        {"node": "node-1"},
        "Node node-1 lacks 2 of its GPUs.",
        "Node node-1 lacks 2 of the GPUs that it should have: they were not found when the exporter or the driver "
        "started. Pods that have it fail or hang.",
    )
    check(tmp_path, fixture, groups=HARDWARE)


def _throttled(fixture: RuleFixture, node: str, reason: str, values: str, *, gpus: int = 1) -> None:
    for number in range(gpus):
        labels = {"node": node, "UUID": f"GPU-{node}-{number}", "gpu": str(number), "reason": reason}
        on_node(fixture, "gpugauge_clock_event", labels, values)


def _rack(fixture: RuleFixture, node: str, rack: str) -> None:
    on_watcher(fixture, "gpugauge_node_info", {"node": node, "rack": rack, "zone": "z1"}, always(1))


def test_heat_and_power_brakes_are_reported_when_they_hold_down_a_gpu_most_of_ten_minutes(tmp_path):
    fixture = RuleFixture()
    _throttled(fixture, "hot", "hw_thermal", "0x19 1x60 0x200")
    _throttled(fixture, "half", "hw_thermal", " ".join(["1 0"] * 100))
    _throttled(fixture, "moment", "hw_thermal", "0x19 1x8 0x200")
    _throttled(fixture, "brake", "hw_power_brake", "0x19 1x200")
    _throttled(fixture, "capped", "power_cap", always(1))
    _throttled(fixture, "halved", "hw_slowdown", always(1))
    _throttled(fixture, "hot-and-halved", "hw_slowdown", always(1))
    _throttled(fixture, "hot-and-halved", "hw_thermal", always(1))
    _throttled(fixture, "warm", "sw_thermal", always(1))
    for minute, found in ((19, ()), (21, ("hot",)), (40, ("hot",)), (70, ())):
        firing(fixture, HEAT, minute, "node", *found, "hot-and-halved")
    firing(fixture, BRAKE, 19, "node")
    firing(fixture, BRAKE, 21, "node", "brake")
    firing(fixture, "GPUHardwareSlowdown", 30, "node", "halved")
    firing(fixture, "GPUSwThermalSlowdown", 29, "node")
    firing(fixture, "GPUSwThermalSlowdown", 31, "node", "warm")
    check(tmp_path, fixture, groups=HARDWARE)


def test_three_nodes_of_a_rack_are_one_page_and_two_are_not(tmp_path):
    fixture = RuleFixture()
    for number in range(3):
        _throttled(fixture, f"r1-{number}", ("hw_thermal", "hw_power_brake")[number % 2], "0x19 1x200", gpus=2)
        _rack(fixture, f"r1-{number}", "R1")
    for number in range(2):
        _throttled(fixture, f"r2-{number}", "hw_thermal", "0x19 1x200")
        _rack(fixture, f"r2-{number}", "R2")
    _throttled(fixture, "elsewhere", "hw_thermal", "0x19 1x200")
    for minute, racks, nodes in ((19, (), ()), (22, ("R1",), ("r2-0", "r2-1", "elsewhere"))):
        firing(fixture, RACK, minute, "rack", *racks)
        firing(fixture, HEAT, minute, "node", *nodes)
        firing(fixture, BRAKE, minute, "node")
    texts(
        fixture,
        RACK,
        30,
        {"rack": "R1", "zone": "z1"},
        "Heat or power slows down GPUs of 3 nodes of rack R1.",
        "Rack R1 in zone z1 has 3 nodes whose GPUs are slowed down by heat or by the power supply: r1-0, r1-1, r1-2. "
        "The cause is in the rack or the room: cooling, air flow, power supply.",
    )
    check(tmp_path, fixture, groups=HARDWARE)


def test_a_reading_that_cannot_be_true_is_reported(tmp_path):
    fixture = RuleFixture()
    for node, power, temperature in (("sound", 700, 60), ("watts", 850, 60), ("degrees", 300, 151)):
        gpu = {"node": node, "UUID": f"GPU-{node}"}
        on_node(fixture, "gpugauge_gpu_power_watts", gpu, always(power))
        on_node(fixture, "gpugauge_gpu_power_limit_watts", gpu, always(700))
        on_node(fixture, "gpugauge_gpu_temperature_celsius", gpu, always(temperature))
    firing(fixture, "GPUReadingAbsurd", 10, "node", "watts", "degrees")
    check(tmp_path, fixture, groups=HARDWARE)
