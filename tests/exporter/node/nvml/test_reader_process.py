"""The source in a process of its own, as the reader child has it: other libraries, crashes, and what it imports."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from exporter.node.reader.process import Child
from exporter.node.simulation.document import Call
from exporter.node.simulation.scenario import load
from tests.exporter.node.nvml.fixture import cells, config, with_events
from tests.fakes.build import OLD_NVML, build, put
from tests.fakes.scenario_table import VARIABLE, Player

PASS = """
import json, sys
from exporter.node.nvml.source import NvmlSource
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import cells, config
source = NvmlSource(config(json.loads(sys.argv[1])))
try:
    readings = source.read()
    found = {}
    for key, value in cells(readings).items():
        found.setdefault(key[3], []).append(value)
    print(json.dumps({"devices": len(readings.inventory), "cells": found,
                      "why": sorted({(r.field, r.reason) for r in readings.rejections})}))
except SourceError as error:
    print(json.dumps({"error": error.reason}))
finally:
    source.close()
"""


@pytest.fixture
def player(tmp_path):
    player = Player(load("whole"), tmp_path / "table")
    player.tick(0)
    return player


def start(player, libraries, *ids):
    environment = os.environ | {VARIABLE: str(player.path), "LD_LIBRARY_PATH": str(libraries)}
    command = [sys.executable, "-c", PASS, json.dumps(ids)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(player, libraries, *ids):
    with start(player, libraries, *ids) as process:
        text, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return json.loads(text)


def test_the_library_is_found_by_its_name(player, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    found = answer(player, tmp_path, 100, 1001)
    assert found["devices"] == 8
    assert found["why"] == []
    assert len(found["cells"]["1001"]) == 8


def test_a_library_that_cannot_be_loaded_is_missing(player, tmp_path):
    (tmp_path / "libnvidia-ml.so.1").write_text("this is no library")
    assert answer(player, tmp_path, 100) == {"error": "library_missing"}


def test_an_old_driver_costs_only_what_it_does_not_know(player, tmp_path):
    put(OLD_NVML, tmp_path)
    found = answer(player, tmp_path, 112, 150, 250, 251, 252, 253, 254, 1001)
    assert found["devices"] == 8
    known = {int(field) for field, values in found["cells"].items() if None not in values}
    assert known == {112, 150, 250, 251}
    assert found["why"] == [[field, "not_supported"] for field in (252, 253, 254, 1001)]


def test_a_crash_in_the_library_ends_the_process(player, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    player.scenario = with_events("whole", Call("nvmlDeviceGetPowerUsage", crash=True))
    player.tick(1)
    with start(player, tmp_path, 155) as process:
        assert process.wait(30) == -signal.SIGABRT


def test_a_hanging_call_holds_the_process_until_it_is_killed(player, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    player.scenario = with_events("whole", Call("nvmlDeviceGetPowerUsage", hang=True))
    player.tick(1)
    with start(player, tmp_path, 155) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.kill()
        assert process.wait(10) == -signal.SIGKILL


def test_a_slow_call_takes_its_time(player, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    player.scenario = with_events("whole", Call("nvmlInitWithFlags", delay=0.7))
    player.tick(1)
    began = time.monotonic()
    assert answer(player, tmp_path, 155)["devices"] == 8
    assert time.monotonic() - began > 0.7


def test_the_reader_child_answers_with_nvml_readings(player, tmp_path):
    build(tmp_path, only="libnvidia-ml")
    setting = ("env", f"{VARIABLE}={player.path}", f"LD_LIBRARY_PATH={tmp_path}")
    waiting, waking = os.pipe()
    child = Child((*setting, sys.executable, "-m", "exporter.node.reader"), config((150, 1004)))
    try:
        child.ask()
        answer = child.listen(time.monotonic() + 30, waiting)
        assert answer is not None
        assert answer.readings is not None, answer
        assert answer.readings.source == "nvml"
        assert None not in cells(answer.readings).values()
    finally:
        assert child.stop(5)
        os.close(waiting)
        os.close(waking)


def test_a_reader_of_nvml_loads_neither_grpc_nor_the_prometheus_client():
    code = "import sys, exporter.node.nvml.source; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"grpc", "prometheus_client", "kubernetes", "uvicorn", "numpy"} & set(loaded)
    assert "pynvml" in loaded
