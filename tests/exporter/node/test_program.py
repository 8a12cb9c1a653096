"""The whole node exporter but its server: counters file, resource names, and when a restart is needed."""

import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from exporter import cli
from exporter.commands.forget import forget
from exporter.config import ConfigError
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.node.config import node_config
from exporter.node.counters_watch import MAX_COUNTERS_BYTES, load_counters
from exporter.node.devices.entities.pci import PciBus
from exporter.node.program import NodeProgram
from exporter.node.restart_need import PATIENCE_SECONDS
from exporter.node.simulation.scenario import load
from exporter.node.state_file.content import RememberedGpu
from exporter.node.state_file.file import StateFile
from simulators.kubelet import SimulatedKubelet
from tests.file_lease import unreadable
from tests.waiting import until


@pytest.fixture
def program(tmp_path):
    """Makes programs from command-line flags; a test sets the clock."""
    made = []

    def make(*flags, driver=tmp_path / "driver", clock=lambda: 0.0, usual=tmp_path / "nothing", pci=None):
        arguments = cli.parse(["node", "--collect-interval", "5000", *flags], {})
        config = replace(node_config(arguments, {"NODE_NAME": "node-1"}), usual_counters_file=usual)
        made.append(NodeProgram(config, clock, driver, pci))
        return made[-1]

    yield make
    for one in made:
        one.close()


def first_snapshot(program, good, seconds=60.0):
    """The first snapshot that satisfies the condition `good`."""
    end = time.monotonic() + seconds
    while not good(snapshot := program.collect()):
        assert time.monotonic() < end, snapshot.health
        time.sleep(0.05)
    return snapshot


def test_it_loads_no_grpc_unless_it_asks_the_kubelet():
    code = (
        "import sys; from exporter import cli; from exporter.node.config import node_config;"
        "from exporter.node.program import NodeProgram;"
        "program = NodeProgram(node_config(cli.parse(['node', *sys.argv[1:]], {}), {}));"
        "print([name for name in ('grpc', 'google.protobuf') if name in sys.modules]); program.close()"
    )
    command = (sys.executable, "-c", code)
    without, with_kubelet = (
        subprocess.run([*command, *flags], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
        for flags in ((), ("--kubernetes",))
    )
    assert without == "[]"
    assert with_kubelet == "['grpc', 'google.protobuf']"


def test_it_loads_no_yaml_reader_unless_a_file_is_yaml(tmp_path):
    code = (
        "import sys; from exporter import cli; from exporter.node.config import node_config;"
        "from exporter.node.program import NodeProgram;"
        "program = NodeProgram(node_config(cli.parse(['node', *sys.argv[1:]], {}), {}));"
        "print('yaml' in sys.modules); program.close()"
    )
    (tmp_path / "counters.yaml").write_text("- {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge}\n")
    command = (sys.executable, "-c", code)
    without, with_yaml = (
        subprocess.run([*command, *flags], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
        for flags in ((), ("-f", str(tmp_path / "counters.yaml")))
    )
    assert (without, with_yaml) == ("False", "True")


def library_missing(snapshot):
    return [health.reason for health in snapshot.health] == ["library_missing"]


def test_a_library_missing_for_five_minutes_beside_a_loaded_driver_needs_a_restart(program, tmp_path):
    now, driver = [100.0], tmp_path / "version"
    made = program("--source", "dcgm", driver=driver, clock=lambda: now[0])
    first_snapshot(made, library_missing)
    now[0] += 2 * PATIENCE_SECONDS
    assert made.restart_needed() is None  # a node without a driver needs no library
    driver.touch()
    first_snapshot(made, library_missing)
    now[0] += PATIENCE_SECONDS
    assert made.restart_needed() is None
    now[0] += 1
    assert "libraries are missing" in made.restart_needed()
    driver.unlink()
    first_snapshot(made, library_missing)
    assert made.restart_needed() is None


def test_health_can_require_that_a_gpu_was_read_since_the_start(program):
    made = program("--source", "simulated", "--health-require-gpus")
    assert made.unhealthy() == "no GPU was read since the start"
    first_snapshot(made, lambda s: s.health[0].up)
    assert made.unhealthy() is None
    assert program("--source", "simulated").unhealthy() is None


def test_health_stays_503_while_no_source_reads_a_gpu(program):
    made = program("--source", "dcgm", "--health-require-gpus")
    first_snapshot(made, library_missing)
    assert made.unhealthy() == "no GPU was read since the start"


def test_a_simulated_node_needs_no_restart_and_expects_the_configured_number_of_gpus(program):
    made = program("--source", "simulated", "--expected-gpus", "9")
    snapshot = first_snapshot(made, lambda s: s.health[0].up)
    families = {family.metric.name: family for family in snapshot.families}
    assert families["gpugauge_devices_expected"].samples[0][1] == 9
    assert families["gpugauge_devices_observed"].samples[0][1] == 8
    assert made.restart_needed() is None


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), 2),
        (("--source", "dcgm", "-r", "localhost:5555"), 2),
        (("--source", "dcgm", "-r", "unix:///run/nv-hostengine.sock"), 2),
        (("-r", "gpu-7.example:5555"), 0),
        (("-r", "gpu-7.example:5555", "--expected-gpus", "1"), 1),
        (("--source", "auto", "-r", "10.1.2.3:5555"), 0),
        (("--source", "simulated"), 0),
    ],
)
def test_the_gpus_of_this_machines_bus_are_expected_only_where_this_machine_is_read(program, tmp_path, flags, expected):
    for address in ("0000:07:00.0", "0000:08:00.0"):
        (tmp_path / "bus" / address).mkdir(parents=True)
        (tmp_path / "bus" / address / "vendor").write_text("0x10de\n")
        (tmp_path / "bus" / address / "class").write_text("0x030200\n")
    assert program(*flags, pci=PciBus(tmp_path / "bus"))._expected_gpus() == expected


@pytest.mark.parametrize(
    ("flags", "counts"),
    [
        ((), False),
        (("--nvidia-resource-names", "amd.com/*"), True),
        (("--nvidia-resource-names", "amd.com/gpu"), True),
        (("--nvidia-resource-names", "amd.com/other,intel.com/*"), False),
    ],
)
def test_an_allocation_counts_when_its_resource_is_a_configured_name_or_has_a_configured_prefix(program, flags, counts):
    uuid = load("whole").document.devices[0].uuid
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        path = Path(folder) / "kubelet.sock"
        with SimulatedKubelet(path, lambda: [("team-a", "train", "main", "amd.com/gpu", (uuid,))]):
            made = program("--source", "simulated", "--kubernetes", "--pod-resources-kubelet-socket", str(path), *flags)
            snapshot = first_snapshot(made, lambda s: all(health.up for health in s.health))
    info = [family for family in snapshot.families if family.metric.name == "gpugauge_allocation_info"]
    allocations = [dict(labels.pairs) for family in info for labels, _ in family.samples]
    assert [(a["UUID"], a["pod"], a["resource"]) for a in allocations] == (
        [(uuid, "train", "amd_com_gpu")] if counts else []
    )
    temperature = next(family for family in snapshot.families if family.metric.name == "DCGM_FI_DEV_GPU_TEMP")
    pods = {dict(labels.pairs)["UUID"]: dict(labels.pairs)["pod"] for labels, _ in temperature.samples}
    assert pods[uuid] == ("train" if counts else "")


def test_without_a_counters_file_the_default_one_is_used():
    assert len(load_counters(None).counters.rows) == 26


TEMP = b"DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
CLOCK = b"DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\n"


def replaced(path, make):
    """Put something else where the counters file is."""
    path.unlink(missing_ok=True)
    make(path)


UNUSABLE = pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "cannot be read: it is a directory, not a regular file"),
        (lambda path: path.symlink_to("nothing"), "cannot be read: No such file or directory"),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to("/dev/null"), "cannot be read: it is a character device, not a regular file"),
        (os.mkfifo, "cannot be read: it is a FIFO, not a regular file"),
        (lambda path: path.write_bytes(TEMP + b"#" * MAX_COUNTERS_BYTES), "cannot be read: it has more than 1048576 b"),
        (lambda path: path.write_bytes(b""), "can be used; it has none"),
        (lambda path: path.write_bytes(b"# " + TEMP), "can be used; it has none"),
        (lambda path: path.write_bytes("\ufeff\r\n".encode()), "can be used; it has none"),
        (lambda path: path.write_bytes(TEMP.decode().encode("utf-16")), "line 1: not UTF-8: "),
        (lambda path: path.write_bytes(TEMP.replace(b".", b"\xb0")), "line 1: not UTF-8: "),
        (lambda path: path.write_bytes(b"DCGM_FI_NO, gauge, x\n"), "line 1: unknown field 'DCGM_FI_NO'"),
    ],
    ids=[
        *("missing", "directory", "dangling", "loop", "device", "fifo", "large", "empty", "comments"),
        *("byte_order_mark", "utf_16", "latin_1", "unknown"),
    ],
)


@UNUSABLE
def test_a_counters_file_that_cannot_be_used_is_an_error_with_one_message(tmp_path, make, message):
    file = tmp_path / "counters.csv"
    make(file)
    with pytest.raises(ConfigError) as caught:
        load_counters(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@UNUSABLE
def test_a_start_with_an_unusable_file_runs_unready_until_a_reload_finds_it_mended(
    program, tmp_path, caplog, make, message
):
    file = tmp_path / "counters.csv"
    make(file)
    made = program("--source", "simulated", "-f", str(file))
    (logged,) = [text for text in caplog.messages if "counters file" in text]
    assert message in logged
    assert str(file) in logged
    names = {f.metric.name for f in first_snapshot(made, lambda s: s.health[0].up).families if f.samples}
    assert "gpugauge_device_info" in names
    assert not [name for name in names if name.startswith("DCGM_")]
    assert re.fullmatch("the counters file .+; the log names it", made.unready())
    assert str(tmp_path) not in made.unready()
    assert config_samples(made) == {"gpugauge_config_last_reload_successful": 0}
    if file.is_dir():
        file.rmdir()
    replaced(file, os.mkfifo)
    made.reload()
    made.collect()
    assert made.unready() == "the counters file cannot be read: it is a FIFO, not a regular file; the log names it"
    assert config_samples(made) == {"gpugauge_config_last_reload_successful": 0}
    replaced(file, lambda path: path.write_bytes(TEMP))
    made.reload()
    snapshot = first_snapshot(made, lambda s: s.health[0].up)
    assert [f.metric.name for f in snapshot.families if f.metric.name.startswith("DCGM_")] == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.unready() is None
    assert config_samples(made)["gpugauge_config_info"] == 1
    assert config_samples(made)["gpugauge_config_last_reload_successful"] == 1


def config_samples(made):
    """The samples about the counters file, by name."""
    families = ExporterMetrics({}, config=lambda: made.config_state).collect()
    return {s.name: s.value for f in families for s in f.samples if s.name.startswith("gpugauge_config_")}


@UNUSABLE
def test_a_reload_that_yields_nothing_usable_keeps_the_last_good_list(program, tmp_path, caplog, make, message):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP + b"DCGM_FI_NO, gauge, x\n")
    made = program("--source", "simulated", "-f", str(file))
    first_snapshot(made, lambda s: s.health[0].up)
    good = made.config_state
    assert (good.successful, good.rejected_rows) == (True, 1)
    replaced(file, make)
    caplog.clear()
    made.reload()
    snapshot = first_snapshot(made, lambda s: s.health[0].up)
    assert [f.metric.name for f in snapshot.families if f.metric.name.startswith("DCGM_")] == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.config_state == replace(good, successful=False)
    assert made.unready() is None
    (logged,) = [text for text in caplog.messages if "reload: " in text]
    assert message in logged
    assert str(file) in logged
    assert "the counters stay as they were" in logged


def dcgm_names(made):
    families = first_snapshot(made, lambda s: s.health[0].up).families
    return [f.metric.name for f in families if f.metric.name.startswith("DCGM_")]


def test_a_changed_file_is_taken_up_by_the_next_collection(program, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    file = tmp_path / "counters.csv"
    file.write_bytes(b"")
    made = program("--source", "simulated", "-f", str(file))
    file.write_bytes(TEMP)
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.unready() is None
    file.write_bytes(TEMP + CLOCK)
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"]
    assert made.config_state.successful
    made.collect()
    assert len([text for text in caplog.messages if "reload: " in text]) == 2


def test_a_change_as_kubernetes_makes_it_in_a_config_map_is_taken_up(program, tmp_path):
    for version, rows in (("1", TEMP), ("2", CLOCK)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "counters.csv").write_bytes(rows)
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "counters.csv").symlink_to("..data/counters.csv")
    made = program("--source", "simulated", "-f", str(tmp_path / "counters.csv"))
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    (tmp_path / "..data_tmp").symlink_to("2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert dcgm_names(made) == ["DCGM_FI_DEV_SM_CLOCK"]


def test_a_file_that_cannot_be_read_for_a_moment_is_read_again_without_any_change_of_it(program, tmp_path, caplog):
    file, now = tmp_path / "counters.csv", [0.0]
    file.write_bytes(TEMP)
    made = program("--source", "simulated", "-f", str(file), clock=lambda: now[0])
    file.write_bytes(TEMP + CLOCK)
    with unreadable(file):
        for _ in range(5):
            now[0] += 60
            made.collect()
    assert not made.config_state.successful
    (logged,) = [text for text in caplog.messages if "reload: " in text]
    assert "cannot be read: Resource temporarily unavailable" in logged
    now[0] += 60
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"]
    assert made.config_state.successful


def test_a_start_with_a_file_that_cannot_be_read_for_a_moment_becomes_ready_without_any_change_of_it(program, tmp_path):
    file, now = tmp_path / "counters.csv", [0.0]
    file.write_bytes(TEMP)
    with unreadable(file):
        made = program("--source", "simulated", "-f", str(file), clock=lambda: now[0])
        assert "Resource temporarily unavailable" in made.unready()
    now[0] += 60
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.unready() is None


def test_a_file_that_comes_to_the_usual_path_after_the_start_is_taken_up(program, tmp_path):
    file = tmp_path / "counters.csv"
    made = program("--source", "simulated", usual=file)
    assert len(dcgm_names(made)) > 20
    file.write_bytes(TEMP)
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    file.unlink()
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert not made.config_state.successful


@UNUSABLE
def test_a_change_to_an_unusable_file_is_logged_once_and_keeps_the_list(program, tmp_path, caplog, make, message):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP)
    made = program("--source", "simulated", "-f", str(file))
    good = made.config_state
    replaced(file, make)
    for _ in range(3):
        made.collect()
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.config_state == replace(good, successful=False)
    (logged,) = [text for text in caplog.messages if "reload: " in text]
    assert message in logged


def test_a_file_that_was_only_touched_or_mended_to_what_is_in_use_restarts_nothing(program, tmp_path):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP)
    made = program("--source", "simulated", "-f", str(file))
    pipeline = made._pipeline
    os.utime(file, (1, 1))
    made.collect()
    file.write_bytes(b"")
    made.collect()
    assert not made.config_state.successful
    file.write_bytes(TEMP)
    made.collect()
    assert made.config_state.successful
    assert made._pipeline is pipeline


def test_a_reload_keeps_the_reader_process_and_the_kubelet(program, tmp_path):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP)
    made = program("--source", "simulated", "-f", str(file))
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP"]
    reader, kubelet = made._reader.pid, made._pipeline._sources.kubelet
    file.write_bytes(TEMP + CLOCK)
    assert dcgm_names(made) == ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"]
    assert made._reader.pid == reader
    assert made._pipeline._sources.kubelet is kubelet


def test_a_reload_counts_the_rejected_rows_of_the_new_file(program, tmp_path, caplog):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP)
    made = program("--source", "simulated", "-f", str(file))
    assert made.config_state.rejected_rows == 0
    file.write_bytes(TEMP + b"DCGM_FI_DEV_SM_CLOCK, gauge, 20 \xb0\nDCGM_FI_NO, gauge, x\n")
    made.reload()
    made.collect()
    assert (made.config_state.successful, made.config_state.rejected_rows) == (True, 2)
    assert f"{file}, line 2: not UTF-8: 'DCGM_FI_DEV_SM_CLOCK, gauge, 20 \\xb0'" in caplog.messages
    assert f"{file}, line 3: unknown field 'DCGM_FI_NO'" in caplog.messages


def test_a_row_that_cannot_be_used_is_logged_and_left_out(program, tmp_path, caplog):
    file = tmp_path / "counters.csv"
    file.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_NO_SUCH_FIELD, gauge, x\n")
    program("--source", "simulated", "-f", str(file))
    assert f"{file}, line 2: unknown field 'DCGM_FI_NO_SUCH_FIELD'" in caplog.messages


@pytest.mark.parametrize(("bad", "more"), [(20, []), (21, [1]), (5000, [4980])])
def test_of_many_rows_that_cannot_be_used_the_first_are_logged_and_the_others_counted(
    program, tmp_path, caplog, bad, more
):
    file = tmp_path / "counters.csv"
    file.write_bytes(TEMP + b"no row\n" * bad)
    made = program("--source", "simulated", "-f", str(file))
    expected = [f"{file}, line {line}: expected 'name, type, help', found 'no row'" for line in range(2, 22)]
    expected += [f"{count} more rows of the counters file cannot be used" for count in more]
    assert [text for text in caplog.messages if "row" in text] == expected
    assert made.config_state.rejected_rows == bad


def test_a_row_of_a_field_that_is_not_read_is_logged_and_counts_as_usable(program, tmp_path, caplog):
    file = tmp_path / "counters.csv"
    file.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_CONNECTX_HEALTH, gauge, x\n")
    made = program("--source", "simulated", "-f", str(file))
    message = "line 2: DCGM_FI_DEV_CONNECTX_HEALTH is a field of one ConnectX network adapter, of which none is read"
    assert f"{file}, {message}" in caplog.messages
    assert made.config_state.rejected_rows == 0


def gauge(snapshot, name):
    ((_, value),) = next(family for family in snapshot.families if family.metric.name == name).samples
    return value


def state_of(path):
    """The content of a state file; None while there is none."""
    return StateFile(path).read()


def with_gpu(path, uuid):
    """Remember one more GPU in a state file, at an address where none is."""
    file = StateFile(path)
    state = file.read()
    lost = RememberedGpu(uuid, 99, "00000000:EE:00.0", model="NVIDIA H100")
    assert file.write(msgspec.structs.replace(state, gpus=(*state.gpus, lost)))


def test_a_gpu_of_the_state_file_that_is_not_there_is_down_until_it_is_forgotten(program, tmp_path):
    path = tmp_path / "state.json"
    flags = ("--source", "simulated", "--state-file", str(path))
    first = program(*flags)
    assert gauge(first_snapshot(first, lambda s: s.health[0].up), "gpugauge_devices_expected") == 8
    until(lambda: state_of(path))
    first.close()
    assert len(state_of(path).uuids) == len(state_of(path).devices) == 8
    with_gpu(path, "GPU-lost")
    second = program(*flags)
    snapshot = first_snapshot(second, lambda s: s.health[0].up)
    assert gauge(snapshot, "gpugauge_devices_expected") == 9
    up = next(family for family in snapshot.families if family.metric.name == "gpugauge_device_up").samples
    assert [dict(labels.pairs)["UUID"] for labels, value in up if not value] == ["GPU-lost"]
    forget(cli.parse(["forget", "GPU-lost", "--state-file", str(path)], {}))
    assert gauge(second.collect(), "gpugauge_devices_expected") == 8
    second.close()
    assert len(state_of(path).uuids) == 8


def test_a_state_file_that_cannot_be_used_is_one_problem_and_costs_nothing_else(program, tmp_path):
    path = tmp_path / "state.json"
    path.write_text("{")
    made = program("--source", "simulated", "--state-file", str(path))
    snapshot = first_snapshot(made, lambda s: s.health[0].up)
    for found in (snapshot, made.collect()):
        assert gauge(found, "gpugauge_devices_observed") == 8
        ((source, reason, message),) = found.problems
        assert (source, reason) == ("state_file", "unreadable")
        assert str(path) in message
    made.close()
    assert path.read_text() == "{"
