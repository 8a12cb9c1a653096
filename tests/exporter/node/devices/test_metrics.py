"""Readings become families: scope, label rows, absence, and identity."""

from prometheus_client import CollectorRegistry

from exporter.exposition.render import render
from exporter.node.devices.counters_file import parse
from exporter.node.devices.labels import NOBODY, DeviceLabelCache, Holder, LabelStyle, canonical_model, device_labels
from exporter.node.devices.metrics import (
    InventoryFamilies,
    columns,
    dcgm_families,
    field_names,
    label_rows,
    unsupported,
)
from exporter.node.devices.readings import Block, Device, Readings, Rejection

GPU = Device("GPU-a", 0, "00000000:07:00.0", 3, "NVIDIA H200", serial="S1", mig_enabled=False)
PARENT = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", mig_enabled=True)
INSTANCE = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", gi=7, profile="1g.18gb")
SHARED = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", gi=3, ci=1, profile="2g.35gb")
STYLE = LabelStyle("n1")
COUNTERS = parse(
    "DCGM_FI_DEV_GPU_TEMP, gauge, T.\nDCGM_FI_DEV_FB_USED, gauge, F.\nDCGM_FI_DRIVER_VERSION, label, D.", "f"
)
READINGS = Readings(
    "simulated",
    1.0,
    (GPU, PARENT, INSTANCE),
    blocks=(
        Block((0,), (150, 252, 1), ((40,), (1000,), ("580.1",))),
        Block((1,), (150, 1), ((None,), ("580.2",))),
        Block((2,), (252,), ((77,),)),
    ),
    rejections=(Rejection(150, "blank", 1), Rejection(999, "blank", 4)),
    down=("GPU-b",),
)


def page(families):
    return render(families, CollectorRegistry()).text.decode()


def test_series_carry_identity_host_label_rows_and_explicitly_empty_holders():
    text = device_labels(GPU, NOBODY, (("DCGM_FI_DRIVER_VERSION", "580.1"),), STYLE).text
    assert text == (
        '{gpu="0",UUID="GPU-a",pci_bus_id="00000000:07:00.0",device="nvidia3",modelName="NVIDIA H200",hostname="n1",'
        'DCGM_FI_DRIVER_VERSION="580.1",namespace="",pod="",container=""}'
    )


def test_an_instance_carries_profile_and_id_and_a_shared_one_its_compute_instance():
    assert 'GPU_I_PROFILE="1g.18gb",GPU_I_ID="7",hostname' in device_labels(INSTANCE, NOBODY, (), STYLE).text
    assert 'GPU_I_ID="3",GPU_CI_ID="1",hostname' in device_labels(SHARED, NOBODY, (), STYLE).text


def test_renaming_options_are_those_of_dcgm_exporter():
    style = LabelStyle("n1", "both", old_namespace=True, replace_blanks_in_model=True)
    text = device_labels(GPU, Holder("ns", "p", "c"), (), style).text
    assert 'uuid="GPU-a"' in text
    assert 'modelName="NVIDIA-H200",hostname="n1",Hostname="n1"' in text
    assert 'pod_namespace="ns",pod_name="p",container_name="c"' in text
    bare = device_labels(GPU, Holder("ns", "p", "c"), (), LabelStyle("n1", "none", holder=False)).text
    assert "hostname" not in bare
    assert "pod" not in bare


def test_the_canonical_model_has_no_blanks_and_no_sharing_or_mig_suffix():
    assert canonical_model("NVIDIA H100 80GB HBM3") == "NVIDIA-H100-80GB-HBM3"
    assert canonical_model("NVIDIA-H100-80GB-HBM3-SHARED") == "NVIDIA-H100-80GB-HBM3"
    assert canonical_model("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") == "NVIDIA-A100-SXM4-40GB"


def test_absent_cells_are_absent_and_label_rows_reach_the_instances_of_a_board():
    by_field = columns(READINGS)
    rows = label_rows(COUNTERS, READINGS, by_field)
    assert [dict(row)["DCGM_FI_DRIVER_VERSION"] for row in rows] == ["580.1", "580.2", "580.2"]
    labels = DeviceLabelCache(STYLE).labels(READINGS.inventory, [NOBODY] * 3, rows)
    lines = [line for line in page(dcgm_families(COUNTERS, by_field, labels)).splitlines() if line[0] != "#"]
    assert [line.split("{")[0] + " " + line.split()[-1] for line in lines] == [
        "DCGM_FI_DEV_GPU_TEMP 40",
        "DCGM_FI_DEV_FB_USED 1000",
        "DCGM_FI_DEV_FB_USED 77",
    ]


def test_equal_inputs_get_the_same_label_objects_and_others_are_forgotten():
    cache = DeviceLabelCache(STYLE)
    first = cache.labels((GPU,), (NOBODY,), ((),))
    assert cache.labels((GPU,), (NOBODY,), ((),))[0] is first[0]
    assert cache.labels((GPU,), (Holder("a", "b", "c"),), ((),))[0] is not first[0]
    assert cache.labels((GPU,), (NOBODY,), ((),))[0] is not first[0]


def test_a_lost_gpu_is_down_and_not_observed_but_still_expected():
    families = page(InventoryFamilies("n1").families(READINGS, expected=0))
    assert 'gpugauge_device_up{gpu="0",UUID="GPU-a",hostname="n1"} 1' in families
    assert 'gpugauge_device_up{gpu="1",UUID="GPU-b",hostname="n1"} 0' in families
    assert 'gpugauge_devices_observed{hostname="n1"} 1' in families
    assert 'gpugauge_devices_expected{hostname="n1"} 2' in families
    assert 'gpugauge_devices_expected{hostname="n1"} 8' in page(InventoryFamilies("n1").families(READINGS, expected=8))


def test_static_facts_live_on_the_info_series_alone():
    families = page(InventoryFamilies("n1").families(READINGS, expected=0))
    assert 'model="NVIDIA-H200",serial="S1",mig_mode="disabled",hostname="n1"} 1' in families
    assert 'model="NVIDIA-H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="7",hostname="n1"} 1' in families


def test_unsupported_fields_are_named_as_the_file_names_them():
    family = unsupported(READINGS, field_names(COUNTERS), "n1")
    assert page([family]).splitlines()[-1] == (
        'gpugauge_field_unsupported_devices{field="DCGM_FI_DEV_GPU_TEMP",reason="blank",hostname="n1"} 1'
    )


def test_a_board_that_nobody_lists_any_more_is_still_expected():
    families = InventoryFamilies("n1")
    families.families(READINGS, expected=0)
    later = page(families.families(Readings("simulated", 2.0, (GPU,)), expected=0))
    assert 'gpugauge_devices_expected{hostname="n1"} 2' in later
    assert 'gpugauge_devices_observed{hostname="n1"} 1' in later
    assert 'gpugauge_devices_expected{hostname="n1"} 2' in page(families.families(Readings("dcgm", 3.0, ()), 0))
