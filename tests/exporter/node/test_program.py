"""The node exporter put together: its counters file, and when only a new container would help."""

import time

import pytest

from exporter import cli
from exporter.config import ConfigError, node_config
from exporter.node.program import LIBRARY_MISSING_SECONDS, NodeProgram, load_counters


@pytest.fixture
def program(tmp_path):
    """Made of command-line flags; its clock shows what the test says."""
    made = []

    def make(*flags, driver=tmp_path / "driver", clock=lambda: 0.0):
        arguments = cli.parse(["node", "--collect-interval", "5000", *flags], {})
        made.append(NodeProgram(node_config(arguments, {"NODE_NAME": "node-1"}), clock, driver))
        return made[-1]

    yield make
    for one in made:
        one.close()


def taken(program, good, seconds=30.0):
    """The first snapshot for which it holds."""
    end = time.monotonic() + seconds
    while not good(snapshot := program.take()):
        assert time.monotonic() < end, snapshot.health
        time.sleep(0.05)
    return snapshot


def lacks_library(snapshot):
    return [health.reason for health in snapshot.health] == ["library_missing"]


def test_a_missing_library_beside_a_loaded_driver_makes_it_unfit_to_live_after_five_minutes(program, tmp_path):
    now, driver = [100.0], tmp_path / "version"
    made = program("--source", "dcgm", driver=driver, clock=lambda: now[0])
    taken(made, lacks_library)
    now[0] += 2 * LIBRARY_MISSING_SECONDS
    assert made.live() is None  # a node without a driver needs no library
    driver.touch()
    taken(made, lacks_library)
    now[0] += LIBRARY_MISSING_SECONDS
    assert made.live() is None
    now[0] += 1
    assert "libraries are missing" in made.live()
    driver.unlink()
    taken(made, lacks_library)
    assert made.live() is None


def test_a_simulated_node_is_live_and_expects_the_gpus_it_was_told_of(program):
    made = program("--source", "simulated", "--expected-gpus", "9")
    snapshot = taken(made, lambda s: s.health[0].up)
    families = {family.metric.name: family for family in snapshot.families}
    assert families["gpugauge_devices_expected"].samples[0][1] == 9
    assert families["gpugauge_devices_observed"].samples[0][1] == 8
    assert made.live() is None


def test_without_a_counters_file_the_default_one_is_used():
    assert len(load_counters(None).counters.rows) == 26


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        ("DCGM_FI_NO_SUCH_FIELD, gauge, x\n", "line 1: unknown field 'DCGM_FI_NO_SUCH_FIELD'"),
    ],
)
def test_a_counters_file_that_cannot_be_used_is_refused_with_one_sentence(program, tmp_path, text, sentence):
    file = tmp_path / "counters.csv"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match="counters") as caught:
        program("--source", "simulated", "-f", str(file))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_row_that_cannot_be_used_costs_only_itself(program, tmp_path, caplog):
    file = tmp_path / "counters.csv"
    file.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_NO_SUCH_FIELD, gauge, x\n")
    program("--source", "simulated", "-f", str(file))
    assert f"{file}, line 2: unknown field 'DCGM_FI_NO_SUCH_FIELD'" in caplog.messages
