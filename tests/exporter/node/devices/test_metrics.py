"""Metric families made from readings: labels, label rows, missing samples, and the series about the devices."""

import pytest
from prometheus_client import CollectorRegistry

from exporter.exposition.render import render
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Batch, Readings, Rejection
from exporter.node.devices.series.labels import (
    NO_CONTAINER,
    DeviceLabelCache,
    ExclusiveContainer,
    LabelStyle,
    device_schema,
)
from exporter.node.devices.series.metrics import (
    EntitySamples,
    InventoryMetrics,
    dcgm_families,
    field_names,
    label_rows,
    samples_by_field,
    samples_of_devices,
    unsupported,
)

GPU = Device("GPU-a", 0, "00000000:07:00.0", 3, "NVIDIA H200", serial="S1", mig_enabled=False)
MIG_GPU = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", mig_enabled=True)
INSTANCE = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", gi=7, profile="1g.18gb")
COMPUTE_INSTANCE = Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200", gi=3, ci=1, profile="2g.35gb")
STYLE = LabelStyle("n1")
COUNTERS = parse(
    "DCGM_FI_DEV_GPU_TEMP, gauge, T.\nDCGM_FI_DEV_FB_USED, gauge, F.\nDCGM_FI_DRIVER_VERSION, label, D.", "f"
)
SCHEMA = device_schema(STYLE, ("DCGM_FI_DRIVER_VERSION",))
READINGS = Readings(
    "simulated",
    1.0,
    (GPU, MIG_GPU, INSTANCE),
    batches=(
        Batch((0,), (150, 252, 1), ((40,), (1000,), ("580.1",))),
        Batch((1,), (150, 1), ((None,), ("580.2",))),
        Batch((2,), (252,), ((77,),)),
    ),
    rejections=(Rejection(150, "blank", 1), Rejection(999, "blank", 4)),
    down=("GPU-b",),
)


def exposition(families):
    return render(families, CollectorRegistry()).text.decode()


def labels_of(device, container=NO_CONTAINER, rows=(), style=STYLE):
    schema = device_schema(style, tuple(name for name, _ in rows))
    (labels,) = DeviceLabelCache(style, schema).labels([device], [container], [rows])
    return labels.text


def test_series_carry_the_device_the_host_the_label_rows_and_empty_allocation_labels():
    assert labels_of(GPU, rows=(("DCGM_FI_DRIVER_VERSION", "580.1"),)) == (
        '{gpu="0",UUID="GPU-a",pci_bus_id="00000000:07:00.0",device="nvidia3",modelName="NVIDIA H200",hostname="n1",'
        'DCGM_FI_DRIVER_VERSION="580.1",namespace="",pod="",container=""}'
    )


def test_a_mig_device_carries_profile_and_instance_id_and_a_compute_instance_its_id_too():
    assert 'GPU_I_PROFILE="1g.18gb",GPU_I_ID="7",hostname' in labels_of(INSTANCE)
    assert 'GPU_I_ID="3",GPU_CI_ID="1",hostname' in labels_of(COMPUTE_INSTANCE)


def test_the_device_file_has_no_name_where_the_minor_number_is_unknown():
    assert 'device=""' in labels_of(Device("GPU-a", 5, "00000000:07:00.0", -1, "NVIDIA H200"))


def test_the_options_that_rename_labels_are_those_of_dcgm_exporter():
    style = LabelStyle("n1", "both", old_namespace=True, replace_blanks_in_model=True)
    text = labels_of(GPU, ExclusiveContainer("ns", "p", "c"), style=style)
    assert 'uuid="GPU-a"' in text
    assert 'modelName="NVIDIA-H200",hostname="n1",Hostname="n1"' in text
    assert 'pod_namespace="ns",pod_name="p",container_name="c"' in text
    bare = labels_of(GPU, ExclusiveContainer("ns", "p", "c"), style=LabelStyle("n1", "none", allocation_labels=False))
    assert "hostname" not in bare
    assert "pod" not in bare


def test_a_sample_without_a_value_is_absent_and_label_rows_reach_the_mig_devices_of_a_gpu():
    by_field = samples_by_field(READINGS.batches)
    rows = label_rows(COUNTERS, READINGS, by_field)
    assert [dict(row)["DCGM_FI_DRIVER_VERSION"] for row in rows] == ["580.1", "580.2", "580.2"]
    labels = DeviceLabelCache(STYLE, SCHEMA).labels(READINGS.inventory, [NO_CONTAINER] * 3, rows)
    families = dcgm_families(COUNTERS, EntitySamples(by_field, labels, SCHEMA), {})
    lines = [line for line in exposition(families).splitlines() if line[0] != "#"]
    assert [line.split("{")[0] + " " + line.split()[-1] for line in lines] == [
        "DCGM_FI_DEV_GPU_TEMP 40",
        "DCGM_FI_DEV_FB_USED 1000",
        "DCGM_FI_DEV_FB_USED 77",
    ]


def test_equal_inputs_give_the_same_label_objects_and_only_those_of_the_last_collection_are_kept():
    cache = DeviceLabelCache(STYLE, SCHEMA)
    first = cache.labels((GPU,), (NO_CONTAINER,), ((),))
    assert cache.labels((GPU,), (NO_CONTAINER,), ((),))[0] is first[0]
    assert cache.labels((GPU,), (ExclusiveContainer("a", "b", "c"),), ((),))[0] is not first[0]
    assert cache.labels((GPU,), (NO_CONTAINER,), ((),))[0] is not first[0]


def test_a_lost_gpu_is_down_and_not_observed_but_still_expected():
    families = exposition(InventoryMetrics("n1").families(READINGS, expected=8))
    assert 'gpugauge_device_up{gpu="0",UUID="GPU-a",node="n1"} 1' in families
    assert 'gpugauge_device_up{gpu="1",UUID="GPU-b",node="n1"} 0' in families
    assert 'gpugauge_devices_observed{node="n1"} 1' in families
    assert 'gpugauge_devices_expected{node="n1"} 8' in families


def test_what_does_not_change_is_a_label_of_the_info_series_alone():
    families = exposition(InventoryMetrics("n1").families(READINGS, expected=0))
    assert 'model="NVIDIA-H200",serial="S1",mig_mode="disabled",node="n1"} 1' in families
    assert 'model="NVIDIA-H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="7",node="n1"} 1' in families


def test_unsupported_fields_are_named_as_the_file_names_them():
    family = unsupported(READINGS, field_names(COUNTERS), "n1")
    assert exposition([family]).splitlines()[-1] == (
        'gpugauge_field_unsupported_devices{field="DCGM_FI_DEV_GPU_TEMP",reason="blank",node="n1"} 1'
    )


def test_the_last_xid_carries_its_code_and_its_words():
    counters = parse("DCGM_FI_DEV_XID_ERRORS, gauge, X.", "f")
    schema = device_schema(STYLE, ())
    readings = Readings("dcgm", 1.0, (GPU, MIG_GPU), (Batch((0, 1), (230,), ((79, 0),)),))
    labels = DeviceLabelCache(STYLE, schema).labels(readings.inventory, [NO_CONTAINER] * 2, ((), ()))
    text = exposition(dcgm_families(counters, EntitySamples(samples_of_devices(readings), labels, schema), {}))
    assert 'UUID="GPU-a"' in text
    assert ',container="",err_code="79",err_msg="GPU has fallen off the bus"} 79' in text
    assert ',container="",err_code="0",err_msg="No Error"} 0' in text


@pytest.mark.parametrize(
    ("others", "xids"),
    [
        ((), (0, 79, 0)),
        ((Batch((0, 1, 2), (150,), ((40, None, None),)),), (0, 79, None)),
        ((Batch((0, 1), (150, 155), ((None, None), (1.0, None))), Batch((2,), (1,), (("580",),))), (0, 79, 0)),
        ((Batch((0, 1, 2), (54, 1), (("a", "b", "c"), ("580",) * 3)),), (None, 79, None)),
    ],
    ids=["nothing else asked", "one answers", "one not asked", "texts only"],
)
def test_that_no_xid_is_known_means_nothing_on_a_gpu_of_which_no_number_could_be_read(others, xids):
    gpus = (GPU, MIG_GPU, Device("GPU-c", 2, "", 2, "NVIDIA H200"))
    readings = Readings("dcgm", 1.0, gpus, (Batch((0, 1, 2), (230,), ((0, 79, 0),)), *others))
    ((_, column),) = samples_of_devices(readings)[230]
    assert column == xids
