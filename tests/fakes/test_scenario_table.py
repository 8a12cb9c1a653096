"""The table file, and the build of the fake libraries that read it."""

import struct
import time
from itertools import count

from exporter.node.simulation.scenario import load, parse
from tests.fakes.build import build
from tests.fakes.scenario_table import ScenarioTable
from tests.fakes.table_bytes import HEADER, known_fields

EMPTY = parse('{"about": "nothing", "devices": []}', "test.json")


def ticks(path):
    return struct.unpack_from("<Q", path.read_bytes(), 32)[0]


def test_a_table_begins_with_its_header_and_its_length_is_the_sum_of_its_sections(tmp_path):
    path = tmp_path / "table"
    ScenarioTable(load("mig"), path).tick(5)
    raw = path.read_bytes()
    magic, version = struct.unpack_from("<II", raw)
    sections = struct.unpack_from("<24I", raw, 40)
    ends = [offset + count * size for offset, count, size, _ in zip(*[iter(sections)] * 4, strict=True)]
    assert (magic, version) == (0x54464747, 1)
    assert [sections[0], *ends[:-1]] == [HEADER.size, *sections[4::4]]
    assert ends[-1] == len(raw)


def test_a_tick_replaces_the_file_and_no_other_file_remains(tmp_path):
    scenario_table = ScenarioTable(EMPTY, tmp_path / "table")
    scenario_table.tick(0)
    with (tmp_path / "table").open("rb") as old:
        scenario_table.tick(1)
        assert struct.unpack_from("<Q", old.read(), 32)[0] == 1
    assert ticks(tmp_path / "table") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_it_ticks_by_itself_while_it_runs_and_not_after(tmp_path):
    with ScenarioTable(EMPTY, tmp_path / "table").run(0.01):
        deadline = time.monotonic() + 30
        while ticks(tmp_path / "table") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    stopped = ticks(tmp_path / "table")
    time.sleep(0.05)
    assert ticks(tmp_path / "table") == stopped


def test_a_jump_changes_the_time_of_the_scenario_and_not_the_clock(tmp_path):
    scenario_table = ScenarioTable(EMPTY, tmp_path / "table", clock=lambda: 5000.0)
    assert scenario_table.jump(70.0).t == 70.0
    assert scenario_table.tick().t == 70.0
    assert struct.unpack_from("<q", (tmp_path / "table").read_bytes(), 24)[0] == 5000 * 10**6


def test_an_older_engine_knows_fewer_fields():
    older, newer = ({field.id for field in known_fields(version)} for version in ("3.3.9", "4.6.0"))
    assert older < newer
    assert {1420, 94} <= newer - older
    assert {155, 1001, 230} <= older


def test_a_library_is_not_compiled_again_from_the_same_sources(tmp_path, monkeypatch):
    first = build(tmp_path / "a", only="libdcgm.so.4")
    monkeypatch.setenv("PATH", "")  # no compiler is found from here on
    second = build(tmp_path / "b", only="libdcgm.so.4")
    assert first["libdcgm.so.4"].read_bytes() == second["libdcgm.so.4"].read_bytes()


def test_a_moment_that_is_written_again_and_again_has_the_same_values_and_new_timestamps(tmp_path):
    scenario_table = ScenarioTable(load("whole"), tmp_path / "table", clock=count(1000.0).__next__, moment=60)
    states = [scenario_table.tick() for _ in range(2)]
    assert [state.t for state in states] == [60, 60]
    assert [struct.unpack_from("<q", (tmp_path / "table").read_bytes(), 24)[0]] == [1002 * 10**6]
