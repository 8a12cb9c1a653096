"""What the tests of the reader share: configurations, scenarios and a wait with a deadline."""

import json
import time
from pathlib import Path

from exporter.node.devices.readings import ReaderConfig, WantedField
from exporter.source import SourceError

UUID = "GPU-00000000-0000-0000-0000-000000000001"
FIELDS = (WantedField(150, "int", "board", "basic"), WantedField(155, "float", "board", "basic"))


def scenario_file(directory, *events, name="scenario.json"):
    path = directory / name
    board = {
        "uuid": UUID,
        "index": 0,
        "pci_bus_id": "00000000:07:00.0",
        "model": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81920,
        "fields": {"DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_POWER_USAGE": 70.5},
    }
    path.write_text(json.dumps({"about": "one board", "devices": [board], "events": list(events)}))
    return str(path)


def simulated(directory, *events, interval=5.0):
    return ReaderConfig("simulated", FIELDS, interval, scenario=scenario_file(directory, *events))


def eventually(read, seconds=10.0):
    """The first answer within that time, whatever the reasons before it."""
    end = time.monotonic() + seconds
    while True:
        try:
            return read()
        except SourceError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def settled(read, seconds=10.0):
    """The SourceError that reads end with once the child has started."""
    end = time.monotonic() + seconds
    while (error := failure(read)).reason == "starting" and time.monotonic() < end:
        time.sleep(0.02)
    return error


def failure(read):
    """The SourceError that one read ends with."""
    try:
        read()
    except SourceError as error:
        return error
    raise AssertionError("the read answered")


def gone(pid, seconds=3.0):
    """Whether that process ends within so many seconds; a zombie has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
