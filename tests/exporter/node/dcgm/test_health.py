"""Health checks through the bindings: a substitute of NVIDIA's Python modules over the compiled fake libdcgm."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.health import bindings as health_bindings
from exporter.node.dcgm.health.checks import FIRST_PAUSE
from exporter.node.dcgm.native.library import open_library
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.counters.computed_metrics import HEALTH_STATUS, READ_BY_CALLS
from exporter.node.devices.readings.health import ALL, WATCHES
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, samples_of_gpu, uuid_of, wanted

BINDINGS = Path(__file__).parents[3] / "fakes" / "dcgm_bindings"
DBE, HEAT = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_THERMAL_VIOLATION"
NOTHING_FOUND = (0, "DCGM_FR_OK")
MODULES = ("dcgm_agent", "dcgm_structs", "dcgm_errors")


@pytest.fixture(autouse=True)
def forgotten_modules():
    """Each test imports the modules anew, as a new reader process does."""
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@dataclass
class CheckedEngine:
    """An engine, and a source with health checks."""

    fixture: EngineFixture
    source: DcgmSource
    groups: list[int] = field(default_factory=list)

    def read(self):
        self.fixture.at(self.fixture.t + 1.0)
        return self.source.read()


@pytest.fixture
def engine_of(tmp_path):
    engines = []

    def make(*gpus, soname="libdcgm.so.4", bindings=BINDINGS, checks=True, events=()):
        fixture = EngineFixture(tmp_path, document(*gpus, events=events), soname)
        engines.append(fixture)
        fields = (*wanted(150), *((READ_BY_CALLS[HEALTH_STATUS],) if checks else ()))
        config = msgspec.structs.replace(fixture.config(), fields=fields, bindings=str(bindings))
        clocks = Clocks(wall=lambda: fixture.now, steady=lambda: fixture.t)
        source = DcgmSource(config, clocks, open_library)
        fixture._sources.append(source)
        return CheckedEngine(fixture, source)

    yield make
    for engine in engines:
        engine.close()


def with_fields(number, **fields):
    spec = gpu_spec(number)
    return spec | {"fields": spec["fields"] | fields}


def found(readings, number):
    """What the checks of one GPU found, by check, without those that found nothing."""
    own = {status.watch: (status.result, status.error) for status in readings.health if status.uuid == uuid_of(number)}
    assert own.keys() == {*WATCHES, ALL}
    return {watch: result for watch, result in own.items() if result != NOTHING_FOUND}


def test_each_check_of_each_gpu_has_its_result_and_all_is_the_worst(engine_of):
    engine = engine_of(with_fields(0, **{DBE: 2, HEAT: 5}), with_fields(1, **{DBE: 0, HEAT: 1}), gpu_spec(2))
    assert engine.source.read().health == ()  # the engine has nothing to compare yet
    readings = engine.read()
    failure, warning = (20, "DCGM_FR_VOLATILE_DBE_DETECTED"), (10, "10")  # a number that the bindings do not name
    assert found(readings, 0) == {"MEM": failure, "THERMAL": warning, "ALL": failure}
    assert found(readings, 1) == {"THERMAL": warning, "ALL": warning}
    assert found(readings, 2) == {}
    assert readings.problems == ()


def test_without_the_row_nothing_is_checked_and_no_module_is_loaded(engine_of):
    readings = engine_of(gpu_spec(), checks=False).read()
    assert (readings.health, readings.problems) == (None, ())
    assert not [name for name in MODULES if name in sys.modules]


def test_the_folder_of_the_bindings_is_searched_for_no_other_module(engine_of):
    before = list(sys.path)
    engine_of(gpu_spec()).read()
    assert sys.path == before


@pytest.mark.parametrize("soname", ["libdcgm.so.4", "libdcgm.so.3"])
def test_bindings_that_are_not_installed_are_a_problem_and_cost_nothing_else(engine_of, tmp_path, soname):
    readings = engine_of(gpu_spec(), soname=soname, bindings=tmp_path).read()
    ((reason, message),) = readings.problems
    assert (reason, readings.health) == ("health_bindings_missing", None)
    assert str(tmp_path) in message
    assert samples_of_gpu(readings) == {150: 40}


def test_bindings_that_cannot_be_imported_are_a_problem_and_cost_nothing_else(engine_of, tmp_path):
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('broken')\n")
    readings = engine_of(gpu_spec(), bindings=tmp_path).read()
    ((reason, message),) = readings.problems
    assert (reason, readings.health) == ("health_bindings_missing", None)
    assert "broken" in message
    assert samples_of_gpu(readings) == {150: 40}
    assert str(tmp_path) not in sys.path


def test_bindings_that_are_installed_later_are_used_after_a_pause(engine_of, tmp_path):
    engine = engine_of(gpu_spec(), bindings=tmp_path / "link")
    assert engine.read().health is None
    (tmp_path / "link").symlink_to(BINDINGS)
    engine.fixture.at(engine.fixture.t + FIRST_PAUSE)
    assert engine.read().health == ()
    assert found(engine.read(), 0) == {}


@pytest.mark.parametrize("function", ["dcgmGroupCreate", "dcgmHealthSet_v2", "dcgmHealthCheck"])
def test_a_call_that_fails_costs_the_health_checks_alone_and_is_tried_again(engine_of, function):
    fault = {"event": "call", "function": function, "at": 10.0, "for": 100.0, "status": -3}
    engine = engine_of(gpu_spec(), events=[fault])
    engine.read()
    assert found(engine.read(), 0) == {}
    engine.fixture.at(10.0)
    if function != "dcgmHealthCheck":
        engine.source._session._health._gpus = {}  # as after a change of the devices
    readings = engine.read()
    assert [reason for reason, _ in readings.problems] == ["health_failed"]
    assert readings.health is None
    assert samples_of_gpu(readings) == {150: 40}
    engine.fixture.at(120.0)
    engine.read()
    engine.fixture.at(engine.fixture.t + 400.0)
    for _ in range(3):
        readings = engine.read()
    assert (found(readings, 0), readings.problems) == ({}, ())


def test_a_gpu_that_the_engine_does_not_take_into_the_group_has_no_checks_and_the_others_have(engine_of):
    lost = {"event": "lost", "device": uuid_of(1), "at": 0.0, "as": "status"}
    engine = engine_of(gpu_spec(0), gpu_spec(1), gpu_spec(2), events=[lost])
    engine.read()
    readings = engine.read()
    assert {status.uuid for status in readings.health} == {uuid_of(0), uuid_of(2)}


@pytest.mark.slow
def test_everything_is_released_when_the_source_is_closed_and_when_the_row_is_gone(engine_of):
    engine = engine_of(gpu_spec())
    for _ in range(100):  # there are 61 groups
        engine.source.want((*wanted(150), READ_BY_CALLS[HEALTH_STATUS]))
        engine.read()
        assert found(engine.read(), 0) == {}
        engine.source.want(wanted(150))
        assert engine.read().health is None
    for _ in range(100):
        engine.source.want((*wanted(150), READ_BY_CALLS[HEALTH_STATUS]))
        engine.read()
        engine.source.close()
        assert engine.read().problems == ()


def test_the_checks_and_errors_are_those_of_the_official_bindings(tmp_path):
    folder = health_bindings.FOLDERS[4]
    if not (folder / "dcgm_agent.py").is_file():
        pytest.skip(f"NVIDIA's bindings of DCGM are not installed in {folder}")
    library = EngineFixture(tmp_path, document(gpu_spec()), "libdcgm.so.4").library
    bindings = health_bindings.load(open_library(str(library)), None)
    structs = bindings.structs
    assert {name: getattr(structs, f"DCGM_HEALTH_WATCH_{name}") for name in WATCHES} == dict(WATCHES)
    assert (structs.DCGM_HEALTH_RESULT_PASS, structs.DCGM_HEALTH_RESULT_FAIL) == (0, 20)
    assert bindings.error_names[0] == "DCGM_FR_OK"
    for name in ("dcgmGroupCreate", "dcgmGroupAddEntity", "dcgmHealthSet_v2", "dcgmHealthCheck"):
        assert callable(getattr(bindings.agent, name))
    assert issubclass(structs.DCGMError, Exception)
