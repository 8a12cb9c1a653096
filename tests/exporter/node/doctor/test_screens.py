"""Whole broken nodes, as folders with fake libraries: the golden screens, with one verdict and one next step."""

import io
from pathlib import Path

import pytest

from exporter.commands.doctor.command import run
from exporter.config import Arguments
from exporter.node.simulation.document import CallFault
from tests.exporter.node.doctor.nodes import PLUGINS, config

pytestmark = [pytest.mark.process, pytest.mark.slow]

GPU = "nvidia.com/gpu"
GOLDEN = Path(__file__).parents[3] / "golden/doctor"


@pytest.fixture
def healthy(node):
    """Make a node with eight GPUs on which everything works, except what the arguments leave out."""

    def make(*events, scenario="whole", driver="570.133.20", library="570.133.20", listens=True, plugin=True, gpus=8):
        node.gpus(gpus)
        node.module(driver)
        node.libraries(driver=library)
        loaded = node.scenario(scenario, *events, listens=listens)
        node.kubelet(loaded)
        (node.folder / PLUGINS.lstrip("/")).mkdir(parents=True)
        if plugin:
            node.plugin()
        return node

    return make


@pytest.fixture
def check(golden):
    """Compare the screen of a node, examined with these flags, with its golden file."""

    def compare(node, name, *words, works=False, **access):
        output = io.StringIO()
        found = run(Arguments(json=False), config("--kubernetes", *words), output, access=node.access(**access))
        golden(node.shown(output.getvalue()), GOLDEN / f"{name}.txt")
        assert found is works

    return compare


def test_all_healthy(healthy, check):
    check(healthy(), "healthy", engine=True, works=True)


def test_no_driver(node, check):
    node.gpus(2, driver="")
    node.libraries(driver="", dcgm=False)
    node.scenario("whole", listens=False)
    check(node, "no-driver")


def test_no_engine(healthy, check):
    node = healthy(listens=False)
    check(node, "no-engine", "-r", node.engine.address)


def test_the_kubelets_socket_is_missing(node, check):
    node.gpus(8)
    node.module()
    node.libraries(dcgm=False)
    node.scenario("whole", listens=False)
    node.plugin()
    check(node, "socket-missing")


def test_mig_is_enabled_without_instances(healthy, check):
    node = healthy(scenario=str(Path(__file__).parent / "mig_empty.json"), listens=False, gpus=2)
    check(node, "mig-empty", "--source", "nvml")


def test_a_bad_counters_file(healthy, check):
    node = healthy()
    node.file("/counters.csv", "DCGM_FI_DEV_GPU_TEMPERATUR, gauge, Temperature.\nDCGM_FI_DEV_SM_CLOCK, gage, Clock.\n")
    check(node, "bad-counters", "-f", str(node.folder / "counters.csv"), "--source", "nvml")


def test_an_unsigned_module_under_secure_boot(node, check):
    node.gpus(1, driver="")
    node.module_file()
    node.secure_boot()
    node.libraries(dcgm=False)
    check(node, "secure-boot", "--source", "nvml")


def test_nouveau_is_bound(node, check):
    node.gpus(1, driver="nouveau")
    node.module_file()
    node.libraries(dcgm=False)
    check(node, "nouveau", "--source", "nvml")


def test_two_driver_versions(healthy, check):
    mismatch = CallFault("nvmlInitWithFlags", status=18)
    check(healthy(mismatch, driver="580.65.06", listens=False), "two-driver-versions", "--source", "nvml")


def test_no_module_for_this_kernel(node, check):
    node.gpus(1, driver="")
    node.file("/lib/modules/6.8.0-45-generic/modules.dep")
    node.module_file("6.8.0-40-generic")
    node.libraries(dcgm=False)
    check(node, "module-missing", "--source", "nvml")


def test_the_engine_is_mute(healthy, check):
    node = healthy(CallFault("dcgmHostengineIsHealthy", hang=True))
    check(node, "engine-mute", "-r", node.engine.address, "--source", "dcgm", source_seconds=3.0)


def test_the_device_plugin_is_missing(healthy, check):
    node = healthy(listens=False, plugin=False)
    node.file(f"{PLUGINS}/kubelet.sock")
    check(node, "device-plugin-missing", "--source", "nvml")


def test_every_unmatched_id_and_every_missing_label_has_its_reason(node, check):
    node.gpus(8)
    node.module()
    node.libraries(dcgm=False)
    node.plugin()
    uuids = [device.uuid for device in node.scenario("whole", listens=False).document.devices]
    rows = [
        ("ml", "train", "main", GPU, uuids[:1]),
        ("ml", "infer-a", "main", GPU, [f"{uuids[1]}::0"]),
        ("ml", "infer-b", "main", GPU, [f"{uuids[1]}::1"]),
        ("kai-resource-reservation", "gpu-reservation", "main", GPU, uuids[2:3]),
        ("ml", "finished", "main", GPU, uuids[3:4]),
        ("ml", "now", "main", GPU, uuids[3:4]),
        ("ml", "odd", "main", GPU, ["gpu\x1b[31m0"]),
        ("ml", "sliced", "main", "nvidia.com/mig-1g.10gb", ["MIG-gone-0", "MIG-gone-1"]),
    ]
    node.kubelet_of(lambda: rows, [(GPU, uuids[:7])])
    check(node, "pod-labels", "--source", "nvml")
