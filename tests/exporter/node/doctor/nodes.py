"""A node as a folder: its /proc, /sys, /dev and /var/lib/kubelet, fake libraries, a host engine and a kubelet."""

import sys
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from demo.cluster import allocations
from exporter import VERSION, cli
from exporter.node.config import node_config
from exporter.node.counters_watch import LoadedCounters
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Readings
from exporter.node.doctor.examination import Examination, SourceAttempt
from exporter.node.doctor.gather import NodeAccess
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.simulation.scenario import Scenario, load
from simulators.kubelet import SimulatedKubelet
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import LIMIT_SECONDS

KERNEL = "6.8.0-45-generic"
DRIVER = "570.133.20"
"""The driver's version in scenarios that name none."""
ROOT_STATUS = "Name:\tgpugauge\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"
KUBELET = "/var/lib/kubelet/pod-resources/kubelet.sock"
PLUGINS = "/var/lib/kubelet/device-plugins"
NO_SOCKETS = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def config(*words):
    """The configuration of these flags on node-1."""
    return node_config(cli.parse(["doctor", *words], {}), {"NODE_NAME": "node-1"})


class NodeFolder:
    """A node below `folder`, at first without anything. Tests add what is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = NodeRoot(folder)
        self.engine = EngineSocket(folder / "engine")
        self._stack = ExitStack()
        self.file("/proc/self/status", ROOT_STATUS)
        self.file("/proc/sys/kernel/osrelease", KERNEL)
        self.file("/proc/net/tcp", NO_SOCKETS)
        (folder / "sys/bus/pci/devices").mkdir(parents=True)

    def close(self):
        self._stack.close()

    def file(self, path, content=""):
        place = self.folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())

    def gpu(self, address="0000:07:00.0", driver="nvidia", vendor="0x10de", number=0):
        """A GPU on the PCI bus and its device file."""
        device = f"/sys/bus/pci/devices/{address}"
        self.file(f"{device}/vendor", f"{vendor}\n")
        self.file(f"{device}/class", "0x030200\n")
        if driver:
            (self.folder / device.lstrip("/") / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
        if driver == "nvidia":
            self.file(f"/dev/nvidia{number}")

    def gpus(self, count, driver="nvidia"):
        for number in range(count):
            self.gpu(f"0000:{number + 7:02x}:00.0", driver, number=number)

    def module(self, version=DRIVER):
        """A loaded kernel module and what comes with it."""
        line = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Mon Mar 10 12:00:00 UTC 2025\n"
        self.file("/proc/driver/nvidia/version", line)
        self.file("/sys/module/nvidia/version", f"{version}\n")
        self.file("/dev/nvidiactl")

    def module_file(self, release=KERNEL, content=b"module"):
        self.file(f"/lib/modules/{release}/updates/dkms/nvidia.ko", content)

    def secure_boot(self):
        variable = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        self.file(f"/sys/firmware/efi/efivars/{variable}", b"\x06\x00\x00\x00\x01")

    def process(self, pid, *words, comm="", maps="", sockets=()):
        self.file(f"/proc/{pid}/cmdline", "\0".join([*words, ""]))
        self.file(f"/proc/{pid}/comm", f"{comm or words[0].rpartition('/')[2]}\n")
        self.file(f"/proc/{pid}/maps", maps)
        (self.folder / f"proc/{pid}/fd").mkdir()
        for number, inode in enumerate(sockets):
            (self.folder / f"proc/{pid}/fd/{number}").symlink_to(f"socket:[{inode}]")

    def listens(self, port, inode, host="0.0.0.0"):
        """Add a listening socket to the kernel's table."""
        address = f"{int.from_bytes(IPv4Address(host).packed, sys.byteorder):08X}"
        row = f"0: {address}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {inode} 1"
        self.file("/proc/net/tcp", f"{NO_SOCKETS}{row}\n")

    def libraries(self, *, driver=DRIVER, dcgm=True):
        """The libraries, in a folder of their own; in place of a missing one is a file that cannot be loaded."""
        place = self.folder / "lib"
        build(place)
        if driver:
            (place / "libnvidia-ml.so.1").rename(place / f"libnvidia-ml.so.{driver}")
            (place / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{driver}")
            (place / "libcuda.so.1").symlink_to(f"libcuda.so.{driver}")
        else:
            (place / "libnvidia-ml.so.1").write_bytes(b"")
        if not dcgm:
            for name in ("libdcgm.so.4", "libdcgm.so.3"):
                (place / name).write_bytes(b"")

    def scenario(self, name, *events, listens=True):
        """What the libraries answer from; `listens` is whether a host engine is at its socket."""
        document = msgspec.structs.replace(load(name).document, events=events)
        scenario = Scenario(name, document)
        listening = self.engine if listens else None
        self._stack.enter_context(ScenarioTable(scenario, self.folder / "table", listening=listening).run(0.2))
        return scenario

    def kubelet(self, scenario):
        """A kubelet that lists the scenario's allocations, with NVIDIA's device plugin."""
        self.kubelet_of(lambda: allocations(scenario, 0.0))

    def kubelet_of(self, listed, offered=None):
        """A kubelet that lists these rows, and offers these resources with their ids."""
        place = self.folder / KUBELET.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        self._stack.enter_context(SimulatedKubelet(place, listed, seed=1)).offered = offered

    def plugin(self, name="nvidia-gpu.sock", *, listens=True):
        place = self.folder / PLUGINS.lstrip("/") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        socket = EngineSocket(place)
        socket.follow(listens=True)
        if listens:
            self._stack.callback(lambda: socket.follow(listens=False))
        else:
            socket._socket.close()

    def access(self, *, engine=False, source_seconds=LIMIT_SECONDS):
        """How the node is reached. With `engine`, its host engine is found without being named."""
        environment = (f"{VARIABLE}={self.folder}/table", f"LD_LIBRARY_PATH={self.folder}/lib")
        return NodeAccess(
            root=self.root,
            prefix=("env", *environment),
            listening=lambda: self.engine.address if engine else None,
            check_seconds=LIMIT_SECONDS,
            library_seconds=LIMIT_SECONDS,
            source_seconds=source_seconds,
        )

    def shown(self, text):
        """A screen without this folder and this version."""
        return text.replace(str(self.folder), "").replace(f"gpugauge {VERSION}", "gpugauge VERSION")


GPU_UUID = "GPU-00000000-0000-0000-0000-000000000000"


def gpu(number=0, **more):
    """A GPU that a source lists."""
    uuid = f"{GPU_UUID[:-1]}{number}"
    return Device(uuid, number, f"00000000:{number + 7:02X}:00.0", number, "NVIDIA H100", **more)


def readings(*devices, source="nvml", **more):
    return Readings(source, 0.0, devices, **more)


def read(*devices, candidate="nvml", **more):
    """A source that was read."""
    return SourceAttempt(candidate, readings=readings(*devices, **more))


def examination(node, *words, counters="DCGM_FI_DEV_GPU_TEMP, gauge, T.", attempts=(), **more):
    """What was found on a node that was examined with these flags; nothing unless it is given."""
    asked = {
        "config": config(*words),
        "root": node.root,
        "counters": LoadedCounters(parse(counters, "counters.csv"), "") if isinstance(counters, str) else counters,
        "nvml": None,
        "dcgm": None,
        "engine": None,
        "others": (),
        "attempts": tuple(attempts),
        "kubelet": None,
    }
    return Examination(**asked | more)


def findings(area, name, examined):
    """What one check finds."""
    (check,) = [each for each in area.CHECKS if each.name == name]
    return list(check.run(examined))


def finding(area, name, examined):
    """The only thing that a check finds: its status, its reason and its detail."""
    (found,) = findings(area, name, examined)
    return str(found.status), found.reason, found.detail
