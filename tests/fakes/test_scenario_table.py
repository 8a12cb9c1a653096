"""The player's table file and the build of the libraries that read it."""

import struct
import time

from exporter.node.simulation.scenario import load, parse
from tests.fakes.build import build
from tests.fakes.scenario_table import HEADER, Player, known_fields

EMPTY = parse('{"about": "nothing", "devices": []}', "test.json")


def ticks(path):
    return struct.unpack_from("<Q", path.read_bytes(), 32)[0]


def test_a_table_begins_with_its_header_and_is_as_long_as_its_sections_say(tmp_path):
    path = tmp_path / "table"
    Player(load("mig"), path).tick(5)
    raw = path.read_bytes()
    magic, version = struct.unpack_from("<II", raw)
    sections = struct.unpack_from("<24I", raw, 40)
    ends = [offset + count * size for offset, count, size, _ in zip(*[iter(sections)] * 4, strict=True)]
    assert (magic, version) == (0x54464747, 1)
    assert [sections[0], *ends[:-1]] == [HEADER.size, *sections[4::4]]
    assert ends[-1] == len(raw)


def test_a_tick_replaces_the_file_and_leaves_no_draft(tmp_path):
    player = Player(EMPTY, tmp_path / "table")
    player.tick(0)
    with (tmp_path / "table").open("rb") as old:
        player.tick(1)
        assert struct.unpack_from("<Q", old.read(), 32)[0] == 1
    assert ticks(tmp_path / "table") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_it_ticks_by_itself_while_it_runs_and_not_after(tmp_path):
    with Player(EMPTY, tmp_path / "table").run(0.01):
        deadline = time.monotonic() + 10
        while ticks(tmp_path / "table") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    stopped = ticks(tmp_path / "table")
    time.sleep(0.05)
    assert ticks(tmp_path / "table") == stopped


def test_an_older_engine_knows_fewer_fields():
    older, newer = ({field.id for field in known_fields(version)} for version in ("3.3.9", "4.6.0"))
    assert older < newer
    assert {1420, 94} <= newer - older
    assert {155, 1001, 230} <= older


def test_what_was_built_from_the_same_sources_is_used_again(tmp_path):
    first = build(tmp_path / "a", only="libdcgm.so.4")
    began = time.monotonic()
    second = build(tmp_path / "b", only="libdcgm.so.4")
    assert time.monotonic() - began < 1
    assert first["libdcgm.so.4"].read_bytes() == second["libdcgm.so.4"].read_bytes()
