"""What a drop-in for dcgm-exporter owes its users, one behavior after the other.

Ports, names, labels, counters files and device ids are as there; where a fault costs more there, it must not here.
"""

import re

import pytest

from exporter.cli import parse
from exporter.flags.table import COMMANDS
from exporter.node.attribution.allocation import Allocation
from exporter.node.config import node_config
from exporter.node.devices.counters.counters_file import parse as parse_counters
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Batch, Readings
from exporter.node.devices.series.labels import LabelStyle
from tests.exporter.node.scenario_flow import (
    EPOCH,
    HOSTNAME,
    STYLE,
    FixedSource,
    SimulatedFlow,
    default_counters,
    flow_over,
    series_of,
)

GPU = Device("GPU-a", 3, "00000000:07:00.0", 5, "NVIDIA H200", driver_version="580.1")
INSTANCE = Device("GPU-a", 3, "00000000:07:00.0", 5, "NVIDIA H200", gi=7, profile="1g.18gb", mig_uuids=("MIG-b",))
USED, TEMPERATURE = 252, 150
USED_ROW = "DCGM_FI_DEV_FB_USED, gauge, Used."


def exposition(counters=USED_ROW, devices=(GPU,), values=(12,), field=USED, allocations=None, style=STYLE):
    """The series of one collection: (name, labels, value)."""
    batch = Batch(tuple(range(len(devices))), (field,), (tuple(values),))
    readings = Readings("dcgm", EPOCH, devices, (batch,))
    kubelet = None if allocations is None else FixedSource("kubelet", allocations)
    flow = flow_over(FixedSource("dcgm", readings), kubelet, parse_counters(counters, "f"), style=style)
    return [(name, dict(labels), v) for (name, labels), v in series_of(flow.exposition().text).items()]


def dcgm(*arguments, **more):
    return [each for each in exposition(*arguments, **more) if each[0].startswith(("DCGM_", "dcgm_"))]


def config(*argv, **environment):
    return node_config(parse(argv, environment), environment)


def test_the_port_and_the_interval_are_those_of_dcgm_exporter():
    found = config()
    assert (found.web.address, found.interval) == (":9400", 30.0)


def test_the_labels_of_a_gpu_are_those_of_dcgm_exporter():
    ((_, labels, value),) = dcgm()
    assert {name: labels[name] for name in ("gpu", "UUID", "pci_bus_id", "device", "modelName", "hostname")} == {
        "gpu": "3",
        "UUID": "GPU-a",
        "pci_bus_id": "00000000:07:00.0",
        "device": "nvidia5",
        "modelName": "NVIDIA H200",
        "hostname": HOSTNAME,
    }
    assert value == 12
    assert not labels.keys() & {"GPU_I_ID", "GPU_I_PROFILE"}


def test_a_mig_device_has_the_labels_of_its_gpu_and_its_profile_and_instance():
    ((_, labels, _),) = dcgm(devices=(INSTANCE,))
    found = {name: labels[name] for name in ("gpu", "UUID", "device", "GPU_I_PROFILE", "GPU_I_ID")}
    assert found == {"gpu": "3", "UUID": "GPU-a", "device": "nvidia5", "GPU_I_PROFILE": "1g.18gb", "GPU_I_ID": "7"}


def test_the_old_namespace_renames_labels_and_no_metric():
    found = Allocation("ns", "p", "c", "nvidia.com/gpu", "GPU-a")
    ((name, labels, _),) = dcgm(allocations=(found,), style=LabelStyle(HOSTNAME, old_namespace=True))
    assert name == "DCGM_FI_DEV_FB_USED"
    assert (labels["uuid"], labels["pod_name"], labels["pod_namespace"], labels["container_name"]) == (
        "GPU-a", "p", "ns", "c",
    )  # fmt: skip
    assert not labels.keys() & {"UUID", "pod", "namespace", "container"}


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ((), {"hostname"}),
        (("--hostname-label", "Hostname"), {"Hostname"}),
        (("--hostname-label", "both"), {"hostname", "Hostname"}),
        (("-n",), set()),
    ],
)
def test_the_host_label_is_the_new_one_the_old_one_both_or_none(flags, names):
    ((_, labels, _),) = dcgm(style=config(*flags, NODE_NAME="gpu-7").style)
    found = {name: value for name, value in labels.items() if name.lower() == "hostname"}
    assert found == dict.fromkeys(names, "gpu-7")


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"])
def test_a_metric_is_named_as_the_file_spells_it(name):
    assert [each for each, _, _ in dcgm(f"{name}, gauge, x", field=TEMPERATURE)] == [name]


def test_a_row_of_type_label_is_a_label_of_every_series_of_its_device():
    batches = (Batch((0,), (USED, 1), ((12,), ("580.1",))),)
    counters = parse_counters(f"{USED_ROW}\nDCGM_FI_DRIVER_VERSION, label, Version.", "f")
    flow = flow_over(FixedSource("dcgm", Readings("dcgm", EPOCH, (GPU,), batches)), None, counters)
    ((_, labels),) = [key for key in series_of(flow.exposition().text) if key[0] == "DCGM_FI_DEV_FB_USED"]
    assert dict(labels)["DCGM_FI_DRIVER_VERSION"] == "580.1"


ACCEPTED = {
    "a blank before the comma": "DCGM_FI_DEV_DEC_UTIL ,gauge , Decoder.",
    "no blank": "DCGM_FI_DEV_DEC_UTIL,gauge,Decoder.",
    "a comma in the help": "DCGM_FI_DEV_DEC_UTIL, gauge, Decoder, in percent.",
    "a quote after a blank": 'DCGM_FI_DEV_DEC_UTIL, gauge, "Decoder, in percent."',
    "a comment sign in the help": "DCGM_FI_DEV_DEC_UTIL, gauge, Decoder # 1.",
    "an indented comment": "  # none\nDCGM_FI_DEV_DEC_UTIL, gauge, Decoder.",
    "a comment and a blank line": "# none\n\nDCGM_FI_DEV_DEC_UTIL, gauge, Decoder.",
}


@pytest.mark.parametrize("row", ACCEPTED.values(), ids=ACCEPTED)
def test_the_grammar_of_the_counters_file_is_that_of_dcgm_exporter_or_more_generous(row):
    found = parse_counters(row, "f")
    assert ([each.name for each in found.rows], found.problems) == (["DCGM_FI_DEV_DEC_UTIL"], ())


def test_a_bad_row_costs_only_itself_and_not_the_process():
    found = parse_counters(f"DCGM_FI_DEV_NO_SUCH_FIELD, gauge, x\n{USED_ROW}\nDCGM_FI_DEV_GPU_TEMP, guage, x", "f")
    assert ([row.name for row in found.rows], len(found.problems)) == (["DCGM_FI_DEV_FB_USED"], 2)


def test_a_value_that_is_blank_has_no_series():
    assert dcgm(devices=(GPU,), values=(None,)) == []


@pytest.mark.parametrize("value", [12, 0, 345.681, 0.0000004, 2**53])
def test_a_number_is_what_prometheus_would_have_read_from_dcgm_exporter(value):
    ((_, _, found),) = dcgm(values=(value,))
    assert found == value


NVLINK = re.compile(r"^# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL (\w+)$", re.MULTILINE)


def test_the_bandwidth_of_nvlinks_is_a_gauge_by_default_as_in_newer_releases():
    assert NVLINK.findall(SimulatedFlow("whole", t=5.0).exposition().text.decode()) == ["gauge"]


IDS = {
    "GPU-a": (GPU, "exclusive"),
    "nvidia5": (GPU, "exclusive"),
    "GPU-a::1": (GPU, "time-slicing"),
    "nvidia5/vgpu1": (GPU, "time-slicing"),
    "MIG-b": (INSTANCE, "exclusive"),
    "MIG-GPU-a/7/0": (INSTANCE, "exclusive"),
    "nvidia5/gi7": (INSTANCE, "exclusive"),
    "nvidia5/gi7/vgpu1": (INSTANCE, "time-slicing"),
    "MIG-b::0": (INSTANCE, "time-slicing"),
}


@pytest.mark.parametrize("device_id", IDS)
def test_every_form_of_a_device_id_is_attributed(device_id):
    device, sharing = IDS[device_id]
    allocation = Allocation("ns", "p", "c", "nvidia.com/gpu", device_id)
    found = exposition(devices=(device,), allocations=(allocation,))
    ((_, info, _),) = [each for each in found if each[0] == "gpugauge_allocation_info"]
    assert (info["gpu_pod"], info["sharing"]) == ("p", sharing)
    ((_, labels, _),) = [each for each in found if each[0] == "DCGM_FI_DEV_FB_USED"]
    assert (labels["pod"], labels["namespace"], labels["container"]) == (
        ("p", "ns", "c") if sharing == "exclusive" else ("", "", "")
    )


def test_the_series_of_a_shared_gpu_stays_one_and_no_use_of_a_pod_is_guessed():
    allocations = tuple(Allocation("ns", f"p{n}", "c", "nvidia.com/gpu", f"GPU-a::{n}") for n in range(3))
    assert [value for _, _, value in dcgm(allocations=allocations)] == [12]


def test_every_flag_and_variable_of_dcgm_exporter_is_accepted():
    node = COMMANDS["node"]
    variables = {flag.variable for flag in (*node.flags(), *node.ignored)}
    assert variables >= OF_DCGM_EXPORTER


OF_DCGM_EXPORTER = set(
    """
    DCGM_EXPORTER_COLLECTORS DCGM_EXPORTER_LISTEN DCGM_EXPORTER_INTERVAL DCGM_EXPORTER_KUBERNETES
    DCGM_EXPORTER_USE_OLD_NAMESPACE DCGM_EXPORTER_DEVICES_STR DCGM_EXPORTER_OTHER_DEVICES_STR
    DCGM_EXPORTER_CPU_DEVICES_STR DCGM_EXPORTER_CONFIGMAP_DATA DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS
    DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE DCGM_EXPORTER_NO_HOSTNAME
    DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX DCGM_EXPORTER_USE_FAKE_GPUS DCGM_EXPORTER_WEB_CONFIG_FILE
    DCGM_EXPORTER_SYSTEMD_SOCKET DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE
    DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME DCGM_EXPORTER_DEBUG DCGM_EXPORTER_LOG_FORMAT
    DCGM_EXPORTER_ENABLE_DCGM_LOG DCGM_EXPORTER_DCGM_LOG_LEVEL DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH
    DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL DCGM_EXPORTER_DUMP_ENABLED DCGM_EXPORTER_DUMP_DIRECTORY
    DCGM_EXPORTER_DUMP_RETENTION DCGM_EXPORTER_DUMP_COMPRESSION DCGM_EXPORTER_ENABLE_PPROF
    DCGM_REMOTE_HOSTENGINE_INFO DCGM_POD_RESOURCES_KUBELET_SOCKET DCGM_HPC_JOB_MAPPING_DIR NVIDIA_RESOURCE_NAMES
    KUBERNETES_VIRTUAL_GPUS KUBERNETES_ENABLE_DRA DISABLE_STARTUP_VALIDATE
    """.split()  # noqa: SIM905 - a list of quoted names would be three times as long
)


def test_the_default_fields_are_those_of_dcgm_exporter():
    assert (len(default_counters().sample_rows), len(default_counters().label_rows)) == (25, 1)
