"""The source `auto` in a real reader process, over both fake libraries."""

import msgspec
import pytest

from exporter.node.reader.supervisor import COMMAND, Reader
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import config
from tests.exporter.node.reader.fake_readers import PATIENT, eventually
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.mark.parametrize("function", ["dcgmHostengineIsHealthy", "dcgmEntitiesGetLatestValues"])
def test_nvml_serves_while_an_engine_that_is_not_chosen_hangs_and_the_engine_when_it_answers(tmp_path, function):
    libraries = build(tmp_path)
    document = load("whole").document
    hanging = msgspec.structs.replace(document, events=(CallFault(function, hang=True),))
    engine = EngineSocket(tmp_path / "engine.sock")
    table = ScenarioTable(Scenario("hanging", hanging), tmp_path / "table", listening=engine)
    table.tick()
    asked = msgspec.structs.replace(
        config((150, 155)), source="auto", remote=engine.address, libdcgm=str(libraries["libdcgm.so.4"])
    )
    reader = Reader(asked, PATIENT, ("env", f"{VARIABLE}={table.path}", f"LD_LIBRARY_PATH={tmp_path}", *COMMAND))
    try:
        assert eventually(reader.read).source == "nvml"
        first = reader.pid
        assert eventually(reader.read).source == "nvml"
        table.scenario = Scenario("answering", msgspec.structs.replace(document, events=()))
        with table.run():
            until(lambda: eventually(reader.read).source == "dcgm")
        assert reader.pid == first
    finally:
        reader.close()
