"""What the tests of the reader share: configurations, a fake reader process, and waits with a generous limit."""

import json
import sys
import time
from pathlib import Path

from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.reader.supervisor import ReaderTimings
from exporter.source import SourceError

UUID = "GPU-00000000-0000-0000-0000-000000000001"
FIELDS = (WantedField(150, "int", "gpu", "basic"), WantedField(155, "float", "gpu", "basic"))
LIMIT_SECONDS = 60.0
"""How long to wait for what must happen, on a busy machine too."""
PATIENT = ReaderTimings(deadline=LIMIT_SECONDS, opening=LIMIT_SECONDS)
"""With an interval of a minute or more, a busy machine does not look like a slow reader process."""

FAKE_PROCESS = """
import sys, time
from pathlib import Path
import msgspec
from exporter.node.devices.readings.readings import Readings, XidReport
from exporter.node.reader.protocol import ReaderReply, ReaderRequest, read_frame, write_frame
folder, replies = Path(sys.argv[1]), 0
read_frame(0)
while (body := read_frame(0)) is not None:
    received_at = time.monotonic()
    while (folder / "hang").exists():
        time.sleep(0.01)
    if (folder / "delay").exists():
        time.sleep(float((folder / "delay").read_text()))
    request = msgspec.msgpack.decode(body, type=ReaderRequest).id
    if (folder / "reason").exists():
        reply = ReaderReply(request, reason=(folder / "reason").read_text(), message="asked for by the test")
    else:
        xids = (XidReport("GPU-a", request, received_at),)
        reply = ReaderReply(request, readings=Readings("simulated", received_at, (), xids=xids))
    write_frame(1, msgspec.msgpack.encode(reply))
    replies += 1
    (folder / "replies").write_text(str(replies))
"""
"""Follows the protocol. Files in its folder control it: `hang`, `delay` (seconds before each reply), `reason` (of each
reply); it writes the number of its replies to `replies`. `taken_at` is the monotonic time of the request. Each reply
with readings has an XID, whose code is the number of the request."""


def process_that(code, *arguments):
    """The command of a process that runs this code in place of the reader process."""
    return (sys.executable, "-c", code, *map(str, arguments))


def scenario_file(directory, *events, name="scenario.json"):
    path = directory / name
    gpu = {
        "uuid": UUID,
        "index": 0,
        "pci_bus_id": "00000000:07:00.0",
        "model": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81920,
        "fields": {"DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_POWER_USAGE": 70.5},
    }
    path.write_text(json.dumps({"about": "one GPU", "devices": [gpu], "events": list(events)}))
    return str(path)


def simulated(directory, *events, interval=100.0):
    return ReaderConfig("simulated", FIELDS, interval, scenario=scenario_file(directory, *events))


def eventually(read, seconds=LIMIT_SECONDS):
    """The first answer within that time, whatever the reasons before it."""
    end = time.monotonic() + seconds
    while True:
        try:
            return read()
        except SourceError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def settled(read, seconds=LIMIT_SECONDS):
    """The SourceError that reads end with once the reader process has opened its source."""
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


def gone(pid, seconds=LIMIT_SECONDS):
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
