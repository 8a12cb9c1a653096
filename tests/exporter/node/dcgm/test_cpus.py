"""The dcgm source over the fake library: fields of Grace CPUs and their cores."""

import pytest

from exporter.node.devices.entities.component import Component
from tests.exporter.node.dcgm.component_fixture import (
    CLOCK,
    CPU_POWER,
    TEMPERATURE,
    UTILIZATION,
    VENDOR,
    VERSIONS,
    cpu_spec,
    of_components,
    switch_spec,
)
from tests.exporter.node.dcgm.fixture import document, gpu_spec, rejected, samples_of_gpu

FIELDS = (CPU_POWER, VENDOR, UTILIZATION, CLOCK)


def grace(*cpus, **more):
    return document(gpu_spec(0), cpus=list(cpus), **({"versions": VERSIONS} | more))


def cpu(number, serial):
    return Component("cpu", number, serial=serial)


def core(number, owner):
    return Component("core", number, owner)


@pytest.mark.parametrize(
    ("engine_of", "serials"),
    [("libdcgm.so.4", ("00A0", "00A1")), ("libdcgm.so.3", ("", ""))],
    indirect=["engine_of"],
    ids=["DCGM 4", "DCGM 3, which gives no serial number"],
)
def test_each_cpu_and_each_core_has_values_of_its_own(engine_of, serials):
    engine = engine_of(grace(cpu_spec(0, 0, 63, 64), cpu_spec(1, 1023)))
    readings = engine.source(150, *FIELDS).read()
    cpus = [cpu(number, serials[number]) for number in (0, 1)]
    cores = [core(0, 0), core(63, 0), core(64, 0), core(1023, 1)]
    assert readings.components == (*cpus, *cores)
    assert of_components(readings) == {
        **{(each, CPU_POWER): 200.0 + each.number for each in cpus},
        **{(each, VENDOR): "Nvidia" for each in cpus},
        **{(each, UTILIZATION): each.number / 1000 for each in cores},
        **{(each, CLOCK): 3_400_000 + each.number for each in cores},
    }
    assert samples_of_gpu(readings) == {150: 40}
    assert (rejected(readings), readings.problems, readings.down) == ({}, (), ())


@pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
def test_readings_of_cpus_equal_those_of_the_simulated_source(engine_of):
    bad = {"event": "samples", "at": 20.0, "devices": ["cpu0/core1"], "fields": [str(UTILIZATION)], "status": -3}
    document = grace(cpu_spec(1, 2, 3), cpu_spec(0, 0, 1), switches=[switch_spec(0)], events=[bad])
    engine = engine_of(document)
    fields = (150, *FIELDS, TEMPERATURE, 1110)
    source = engine.source(*fields)
    for t in (0.0, 1.0, 30.0):
        engine.at(t)
        real, simulated = source.read(), engine.simulated(engine.config(*fields))
        assert of_components(real) == of_components(simulated)
        assert set(real.components) == set(simulated.components)
        assert rejected(real) == rejected(simulated)
    assert rejected(real) == {(1110, "not_supported"): 2, (UTILIZATION, "blank"): 1}


def test_on_a_machine_with_other_cpus_there_are_none_and_nothing_is_wrong(engine_of):
    readings = engine_of(document(gpu_spec(0))).source(150, *FIELDS).read()
    assert (readings.components, readings.component_batches, readings.problems) == ((), (), ())
    assert samples_of_gpu(readings) == {150: 40}


def test_an_embedded_engine_reads_cpus_also_without_any_gpu(engine_of):
    engine = engine_of(document(cpus=[cpu_spec(0, 0)]))
    readings = engine.source(150, CPU_POWER, remote=None).read()
    assert list(of_components(readings).values()) == [200.0]


@pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
@pytest.mark.parametrize("status", [-12, -20])
def test_a_library_without_the_newer_list_gives_the_older_one(engine_of, status):
    fault = {"event": "call", "function": "dcgmGetCpuHierarchy_v2", "status": status}
    readings = engine_of(grace(cpu_spec(0, 5), events=[fault])).source(150, CPU_POWER, CLOCK).read()
    assert readings.components == (cpu(0, ""), core(5, 0))
    assert readings.problems == ()


def test_a_negative_utilization_is_an_error_of_the_engine_and_not_exposed(engine_of):
    cores = [{"number": 0, "fields": {str(UTILIZATION): -1.0}}, {"number": 1, "fields": {str(UTILIZATION): 0.25}}]
    readings = engine_of(grace(cpu_spec(0, cores=cores))).source(150, UTILIZATION).read()
    assert of_components(readings) == {(core(1, 0), UTILIZATION): 0.25}
    assert rejected(readings) == {(UTILIZATION, "out_of_range"): 1}


def test_all_cores_of_a_large_machine_are_read_in_as_many_calls_as_the_limits_require(engine_of):
    engine = engine_of(grace(cpu_spec(0, *range(72)), cpu_spec(1, *range(72, 144))))
    assert len(of_components(engine.source(UTILIZATION, CLOCK).read())) == 144 * 2
