"""Faults of the configuration: of the counters file while the exporter runs, and of flags at its start."""

import os
import subprocess
import sys

import pytest

from exporter.backoff import LONGEST_PAUSE
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.fakes.build import build
from tests.faults.fault import LIMIT_SECONDS, fault
from tests.file_lease import unreadable

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
ROW = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
OTHER = "DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\n"
UNUSED = ("gpugauge_config_last_reload_successful 0", "gpugauge_device_info 1", 'gpugauge_source_up{source="dcgm"} 1')
"""The samples of an exporter without any field."""
KEPT = (
    "gpugauge_config_last_reload_successful 0",
    "gpugauge_config_info 1",
    "DCGM_FI_DEV_GPU_TEMP > 0",
    'gpugauge_source_up{source="dcgm"} 1',
)
"""The samples of an exporter that goes on with the fields that it had."""


@pytest.fixture
def counters(tmp_path):
    file = tmp_path / "counters.csv"
    file.write_text(ROW)
    return file


def exposes(*names):
    """Whether the last attempt to read the file succeeded and just these fields are exposed."""
    return lambda exposed: (
        exposed.named("DCGM_") == set(names) and exposed.value("gpugauge_config_last_reload_successful") == 1
    )


def started(exporter, counters):
    """An exporter that reads its devices, whatever the counters file is."""
    node = exporter("dcgm", "-f", str(counters), ready=False)
    build(node.libraries)
    node.kubelet.start()
    return node


def assert_unready_until_mended(row, node, counters):
    row.wait_until_shown(node.scraper.get)
    assert node.scraper.get("/health") == (200, "OK")
    counters.write_text(ROW)
    row.wait_until_recovered(node.scraper.get, exposes("DCGM_FI_DEV_GPU_TEMP"), INTERVAL)


@fault(
    name="At the start, no row of the counters file can be used",
    shows=UNUSED,
    absent=("DCGM_", "gpugauge_config_info"),
    unready="the counters file has no row that can be used; the log names it",
)
def test_a_start_with_a_file_without_rows_is_unready_until_it_is_mended(exporter, counters, row):
    counters.write_text("# comments only\n")
    assert_unready_until_mended(row, started(exporter, counters), counters)


@fault(
    name="At the start, the counters file is not there",
    shows=UNUSED,
    absent=("DCGM_", "gpugauge_config_info"),
    unready="the counters file cannot be read: No such file or directory; the log names it",
)
def test_a_start_without_the_file_is_unready_until_it_is_there(exporter, counters, row):
    counters.unlink()
    assert_unready_until_mended(row, started(exporter, counters), counters)


@fault(
    name="At the start, the counters file cannot be read for a moment, as from a file system with a fault",
    shows=UNUSED,
    absent=("DCGM_", "gpugauge_config_info"),
    unready="the counters file cannot be read: Resource temporarily unavailable; the log names it",
    pause=LONGEST_PAUSE,
)
def test_a_file_that_fails_for_a_moment_at_the_start_is_read_again(exporter, counters, row):
    with unreadable(counters):
        node = started(exporter, counters)
        row.wait_until_shown(node.scraper.get)
    row.wait_until_recovered(node.scraper.get, exposes("DCGM_FI_DEV_GPU_TEMP"), INTERVAL)


@fault(name="While it runs, the counters file is replaced by one without any row that can be used", shows=KEPT)
@pytest.mark.parametrize("broken", ["# comments only\n", "no row\n", ""], ids=["comments", "no row", "empty"])
def test_a_reload_without_rows_keeps_the_fields(exporter, counters, row, broken):
    node = exporter("dcgm", "-f", str(counters), has_activity=False)
    counters.write_text(broken)
    row.wait_until_shown(node.scraper.get)
    counters.write_text(OTHER)
    row.wait_until_recovered(node.scraper.get, exposes("DCGM_FI_DEV_SM_CLOCK"), INTERVAL)


@fault(name="While it runs, the counters file goes away", shows=KEPT)
def test_a_file_that_goes_away_keeps_the_fields(exporter, counters, row):
    node = exporter("dcgm", "-f", str(counters), has_activity=False)
    counters.unlink()
    row.wait_until_shown(node.scraper.get)
    counters.write_text(OTHER)
    row.wait_until_recovered(node.scraper.get, exposes("DCGM_FI_DEV_SM_CLOCK"), INTERVAL)


@fault(name="While it runs, the counters file cannot be read for a moment", shows=KEPT, pause=LONGEST_PAUSE)
def test_a_file_that_fails_for_a_moment_is_read_again_without_a_change(exporter, counters, row):
    node = exporter("dcgm", "-f", str(counters), has_activity=False)
    with unreadable(counters):
        os.utime(counters)
        row.wait_until_shown(node.scraper.get)
    row.wait_until_recovered(node.scraper.get, exposes("DCGM_FI_DEV_GPU_TEMP"), INTERVAL)


@fault(
    name="A row of the counters file cannot be used",
    shows=("gpugauge_config_rejected_rows 1", "gpugauge_config_last_reload_successful 1", "DCGM_FI_DEV_GPU_TEMP > 0"),
)
def test_a_row_that_cannot_be_used_is_counted(exporter, counters, row):
    counters.write_text(f"{ROW}no row\n")
    node = exporter("dcgm", "-f", str(counters), has_activity=False)
    row.wait_until_shown(node.scraper.get)
    counters.write_text(ROW)
    row.wait_until_recovered(
        node.scraper.get, lambda exposed: exposed.value("gpugauge_config_rejected_rows") == 0, INTERVAL
    )


@fault(name="A flag, a variable or the web configuration file cannot be used", ends=2, recovery="with a correct value")
@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        (("--collect-interval", "fast"), {}),
        (("-r", "[::1"), {}),
        ((), {"DCGM_REMOTE_HOSTENGINE_INFO": "[::1"}),
        (("--web-config-file", "/nowhere/web.yml", "--source", "simulated"), {}),
    ],
)
def test_a_value_that_cannot_be_used_ends_the_start_with_one_message(row, flags, variables):
    command = [sys.executable, "-m", "exporter", "node", *flags, "--address", "127.0.0.1:0"]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, check=False, timeout=LIMIT_SECONDS)
    assert done.returncode == row.ends
    assert done.stderr.splitlines()[-1].startswith(b"gpugauge: ")
