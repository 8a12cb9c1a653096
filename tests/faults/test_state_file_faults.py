"""Faults of the state file, and of a GPU that is in it and not on the node."""

import pytest

from exporter import cli
from exporter.backoff import LONGEST_PAUSE
from exporter.commands.forget import forget
from exporter.node.state_file.content import RememberedGpu, RememberedNode
from exporter.node.state_file.file import StateFile
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.faults.fault import fault

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
GOES_ON = ('gpugauge_source_up{source="dcgm"} 1', "DCGM_FI_DEV_GPU_TEMP > 0")


def has_no_problem(exposed):
    return exposed.value("gpugauge_source_problem", source="state_file") is None


@fault(
    name="The state file cannot be used",
    shows=('gpugauge_source_problem{source="state_file",reason="unreadable"} 1', *GOES_ON),
)
def test_a_state_file_that_cannot_be_used_is_left_as_it_is_until_it_is_removed(exporter, tmp_path, row):
    file = tmp_path / "state.json"
    file.write_text("{")
    node = exporter("dcgm", "--state-file", str(file))
    row.wait_until_shown(node.scraper.get)
    assert file.read_text() == "{"
    file.unlink()
    row.wait_until_recovered(node.scraper.get, has_no_problem, INTERVAL)


@fault(
    name="The state file cannot be written",
    shows=('gpugauge_source_problem{source="state_file",reason="unwritable"} 1', *GOES_ON),
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_a_state_file_without_its_folder_is_written_once_that_is_there(exporter, tmp_path, row):
    file = tmp_path / "folder" / "state.json"
    node = exporter("dcgm", "--state-file", str(file))
    row.wait_until_shown(node.scraper.get)
    file.parent.mkdir()
    row.wait_until_recovered(node.scraper.get, has_no_problem, INTERVAL)
    assert StateFile(file).read().gpus


@fault(
    name="A GPU has gone while the exporter was down, and the exporter has a state file",
    shows=(
        'gpugauge_device_up{UUID="GPU-gone"} 0',
        "gpugauge_devices_expected 9",
        "gpugauge_devices_observed 8",
        *GOES_ON,
    ),
    recovery="with the GPU, when another one is in its place, or with `gpugauge forget`",
)
def test_a_gpu_of_the_state_file_is_down_until_it_is_forgotten(exporter, tmp_path, row):
    file = StateFile(tmp_path / "state.json")
    file.read()
    file.write(RememberedNode((RememberedGpu("GPU-gone", 8, "00000000:EE:00.0"),)))
    node = exporter("dcgm", "--state-file", str(file.path), scenario="whole")
    row.wait_until_shown(node.scraper.get)
    forget(cli.parse(["forget", "GPU-gone", "--state-file", str(file.path)], {}))
    row.wait_until_recovered(
        node.scraper.get, lambda exposed: exposed.value("gpugauge_devices_expected") == 8, INTERVAL
    )
