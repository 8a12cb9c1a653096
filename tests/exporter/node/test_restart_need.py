"""When only a restart of the container can help: libraries that are missing or no longer fit the loaded driver."""

import pytest

from exporter import cli
from exporter.node.config import node_config
from exporter.node.program import NodeProgram
from exporter.node.restart_need import MESSAGES, PATIENCE_SECONDS, RestartNeed
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import load
from exporter.snapshot import Snapshot, SourceHealth
from tests.clock import Clock
from tests.exporter.node.nvml.fixture import with_events
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import until

UP = SourceHealth("nvml", up=True, seconds=0.1)
MISMATCH, STARTING, RESTARTING, UNBOUND, LOST = (
    SourceHealth("nvml", up=False, seconds=0.1, reason=reason)
    for reason in ("driver_mismatch", "starting", "restarting", "driver_unbound", "connection_lost")
)


@pytest.fixture
def driver(tmp_path):
    path = tmp_path / "version"
    path.touch()
    return path


def noted(driver, *healths, seconds=PATIENCE_SECONDS + 1):
    """The message after these collections, which are evenly spread over the time."""
    clock = Clock()
    need = RestartNeed(clock, driver)
    for health in healths:
        need.note(Snapshot(0.0, (), (health,)))
        clock.now += seconds / max(len(healths) - 1, 1)
    return need.message()


@pytest.mark.parametrize("reason", MESSAGES)
def test_a_restart_is_needed_once_the_reason_has_lasted_for_five_minutes(driver, reason):
    health = SourceHealth("x", up=False, seconds=0.1, reason=reason)
    assert noted(driver, health, health) == MESSAGES[reason]
    assert noted(driver, health, health, seconds=PATIENCE_SECONDS / 2) is None


def test_the_pauses_between_reader_processes_do_not_end_the_time(driver):
    assert noted(driver, MISMATCH, RESTARTING, STARTING, MISMATCH, RESTARTING) == MESSAGES["driver_mismatch"]
    assert noted(driver, MISMATCH, UNBOUND, STARTING, MISMATCH) == MESSAGES["driver_mismatch"]
    assert noted(driver, RESTARTING, RESTARTING) is None


@pytest.mark.parametrize("between", [UP, LOST])
def test_the_time_begins_anew_after_anything_else(driver, between):
    assert noted(driver, MISMATCH, MISMATCH, between, MISMATCH) is None


def test_without_a_loaded_driver_no_restart_helps(driver):
    driver.unlink()
    assert noted(driver, MISMATCH, MISMATCH, MISMATCH) is None


@pytest.mark.process
def test_a_library_that_never_fits_needs_a_restart_and_one_that_fits_later_is_taken(driver, tmp_path, monkeypatch):
    build(tmp_path / "libraries", only="libnvidia-ml")
    table = ScenarioTable(with_events("whole", CallFault("nvmlInitWithFlags", status=18)), tmp_path / "table")
    table.tick(1)
    monkeypatch.setenv(VARIABLE, str(table.path))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "libraries"))
    clock = Clock()
    arguments = cli.parse(["node", "--source", "nvml", "--collect-interval", "5000"], {})
    program = NodeProgram(node_config(arguments, {"NODE_NAME": "node-1"}), clock, driver)
    try:
        reasons = lambda: [health.reason for health in program.collect().health]  # noqa: E731 - read again and again
        until(lambda: reasons() == ["driver_mismatch"], every=0.2)
        assert program.restart_needed() is None
        clock.now += PATIENCE_SECONDS + 1
        until(lambda: reasons() == ["driver_mismatch"], every=0.2)
        assert program.restart_needed() == MESSAGES["driver_mismatch"]
        table.scenario = load("whole")
        table.tick(2)
        until(lambda: program.collect().health[0].up, every=0.2)
        assert program.restart_needed() is None
    finally:
        program.close()
