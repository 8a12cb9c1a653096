"""The source in a process of its own, as in the reader process: other libraries, crashes, and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from exporter.node.reader.process import ReaderProcess
from exporter.node.reader.protocol import ReaderRequest, frame, read_frame
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.processes import ProcessSpec
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import config, samples, with_events
from tests.fakes.build import OLD_NVML, build, put
from tests.fakes.scenario_table import VARIABLE, ScenarioTable

pytestmark = pytest.mark.process

LIMIT = 60.0
"""Seconds to wait for a process on a busy machine."""

COLLECTION = """
import json, sys
import msgspec
from exporter.node.nvml.source import NvmlSource
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import samples, config
source = NvmlSource(msgspec.structs.replace(config(json.loads(sys.argv[1])), processes=True))
try:
    readings = source.read()
    found = {}
    for key, value in samples(readings).items():
        found.setdefault(key[3], []).append(value)
    print(json.dumps({"devices": len(readings.inventory), "samples": found,
                      "processes": [[p.pid, p.memory] for gpu in readings.processes.gpus for p in gpu.processes],
                      "problems": [reason for reason, _ in readings.problems],
                      "rejected": sorted({(r.field, r.reason) for r in readings.rejections})}))
except SourceError as error:
    print(json.dumps({"error": error.reason}))
finally:
    source.close()
"""


@pytest.fixture
def table(tmp_path):
    table = ScenarioTable(load("whole"), tmp_path / "table")
    table.tick(0)
    return table


def start(table, libraries, *ids):
    environment = os.environ | {VARIABLE: str(table.path), "LD_LIBRARY_PATH": str(libraries)}
    command = [sys.executable, "-c", COLLECTION, json.dumps(ids)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def collect(table, libraries, *ids):
    with start(table, libraries, *ids) as process:
        text, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    return json.loads(text)


def test_the_library_is_found_by_its_name(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    found = collect(table, tmp_path, 100, 1001)
    assert found["devices"] == 8
    assert found["rejected"] == []
    assert len(found["samples"]["1001"]) == 8


def test_a_library_that_cannot_be_loaded_is_missing(table, tmp_path):
    (tmp_path / "libnvidia-ml.so.1").write_text("this is no library")
    assert collect(table, tmp_path, 100) == {"error": "library_missing"}


def test_an_old_driver_lacks_only_the_values_of_newer_functions(table, tmp_path):
    put(OLD_NVML, tmp_path)
    found = collect(table, tmp_path, 112, 150, 250, 251, 252, 253, 254, 1001)
    assert found["devices"] == 8
    known = {int(field) for field, values in found["samples"].items() if None not in values}
    assert known == {112, 150, 250, 251, 252}
    assert found["rejected"] == [[field, "not_supported"] for field in (253, 254, 1001)]
    assert found["problems"] == ["reserved_included"]
    total, free, used = (found["samples"][field] for field in ("250", "251", "252"))
    assert [t - f for t, f in zip(total, free, strict=True)] == used


def test_a_driver_from_before_mig_lists_its_processes(table, tmp_path):
    put(OLD_NVML, tmp_path)
    document = load("whole").document
    process = ProcessSpec(20, document.devices[0].uuid, 2048, kinds=("compute", "graphics"))
    table.scenario = Scenario("whole", msgspec.structs.replace(document, processes=(process,)))
    table.tick(1)
    assert collect(table, tmp_path, 150)["processes"] == [[20, 2048 << 20]]


def test_memory_of_a_driver_that_has_the_reserved_part_is_no_problem(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    assert collect(table, tmp_path, 252)["problems"] == []


def test_an_old_driver_is_a_problem_only_where_used_memory_is_read(table, tmp_path):
    put(OLD_NVML, tmp_path)
    assert collect(table, tmp_path, 150, 251)["problems"] == []


def test_a_crash_in_the_library_ends_the_process(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    table.scenario = with_events("whole", CallFault("nvmlDeviceGetPowerUsage", crash=True))
    table.tick(1)
    with start(table, tmp_path, 155) as process:
        assert process.wait(LIMIT) == -signal.SIGABRT


def test_a_hanging_call_blocks_the_process_until_it_is_killed(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    table.scenario = with_events("whole", CallFault("nvmlDeviceGetPowerUsage", hang=True))
    table.tick(1)
    with start(table, tmp_path, 155) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.kill()
        assert process.wait(LIMIT) == -signal.SIGKILL


def test_a_slow_call_delays_the_collection(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    table.scenario = with_events("whole", CallFault("nvmlInitWithFlags", delay=0.7))
    table.tick(1)
    began = time.monotonic()
    assert collect(table, tmp_path, 155)["devices"] == 8
    assert time.monotonic() - began > 0.7


def test_the_reader_process_replies_with_nvml_readings(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    environment = ("env", f"{VARIABLE}={table.path}", f"LD_LIBRARY_PATH={tmp_path}")
    wake_read, wake_write = os.pipe()
    asked = config((150, 1004))
    reader = ReaderProcess((*environment, sys.executable, "-m", "exporter.node.reader"), asked)
    try:
        reader.request(asked.fields)
        reply = reader.receive(time.monotonic() + LIMIT, wake_read)
        assert reply is not None
        assert reply.readings is not None, reply
        assert reply.readings.source == "nvml"
        assert None not in samples(reply.readings).values()
    finally:
        assert reader.stop(LIMIT)
        os.close(wake_read)
        os.close(wake_write)


def log_of_reader_process(table, libraries, *arguments):
    """What a reader process with these arguments logs when the source `auto` chooses NVML, line by line."""
    environment = os.environ | {VARIABLE: str(table.path), "LD_LIBRARY_PATH": str(libraries)}
    command = [sys.executable, "-m", "exporter.node.reader", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        auto = msgspec.structs.replace(config((150,)), source="auto")
        process.stdin.write(frame(msgspec.msgpack.encode(auto)) + frame(msgspec.msgpack.encode(ReaderRequest(1))))
        process.stdin.flush()
        # The pipe is closed after the reply: from then on the process has one second, which a busy machine may need.
        reply = read_frame(process.stdout.fileno())
        _, log = process.communicate(timeout=LIMIT)
    assert b"nvml" in reply
    return log.decode().splitlines()


@pytest.mark.parametrize("arguments", [(), ("text", "info"), ("text", "debug")])
def test_the_log_of_the_reader_process_is_text_from_the_chosen_level_on(table, tmp_path, arguments):
    build(tmp_path, only="libnvidia-ml")
    (line,) = log_of_reader_process(table, tmp_path, *arguments)
    assert re.match(r'time=\S+Z level=INFO msg="reading from nvml.*" logger=exporter\.node\.reader\.auto$', line)


def test_the_log_of_the_reader_process_is_json_where_that_was_chosen(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    (line,) = log_of_reader_process(table, tmp_path, "json", "info")
    record = json.loads(line)
    assert (record["level"], record["logger"]) == ("INFO", "exporter.node.reader.auto")
    assert record["msg"].startswith("reading from nvml")


def test_the_reader_process_logs_nothing_below_the_chosen_level(table, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    assert log_of_reader_process(table, tmp_path, "text", "warning") == []


def test_the_nvml_source_imports_neither_grpc_nor_the_prometheus_client():
    code = "import sys, exporter.node.nvml.source; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"grpc", "prometheus_client", "kubernetes", "uvicorn", "numpy"} & set(loaded)
    assert "pynvml" in loaded
