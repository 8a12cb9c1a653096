"""A file pauses profiling: its watches end, everything else goes on, and it comes back without a restart."""

import time
from dataclasses import replace

import pytest

from exporter import cli
from exporter.node.config import node_config
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.profiling_pause import ProfilingPause
from exporter.node.program import NodeProgram
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, samples_of_gpu, wanted

FIELDS = wanted(150, 230, 1004)


@pytest.fixture
def program(tmp_path):
    argv = ["--source", "simulated", "--profiling-pause-file", str(tmp_path / "pause")]
    config = node_config(cli.parse(argv, {}), {"NODE_NAME": "node-1"})
    made = NodeProgram(replace(config, usual_counters_file=tmp_path / "nothing"), lambda: 0.0, tmp_path / "driver")
    yield made
    made.close()


def collected(program):
    """The names of the DCGM-named metrics with samples, and the reasons of problems, of one collection."""
    end = time.monotonic() + 60
    while not (snapshot := program.collect()).health[0].up:
        assert time.monotonic() < end, snapshot.health
        time.sleep(0.05)
    names = {family.metric.name for family in snapshot.families if family.samples}
    return {name for name in names if name.startswith("DCGM_")}, {problem.reason for problem in snapshot.problems}


def profiling(names):
    return {name for name in names if name.startswith("DCGM_FI_PROF_")}


def test_without_the_file_nothing_is_paused(tmp_path):
    for file in (None, tmp_path / "none"):
        pause = ProfilingPause(file)
        assert (pause.wanted(FIELDS), pause.problem("dcgm")) == (FIELDS, None)


def test_a_file_that_is_there_at_the_start_pauses_from_the_first_collection_on(tmp_path):
    file = tmp_path / "pause"
    file.touch()
    pause = ProfilingPause(file)
    assert not pause.look()
    assert [field.id for field in pause.wanted(FIELDS)] == [150, 230]


def test_while_the_file_is_there_only_profiling_fields_are_missing_and_it_is_said(program, tmp_path):
    before, problems = collected(program)
    assert profiling(before)
    assert problems == set()
    (tmp_path / "pause").touch()
    paused, problems = collected(program)
    assert paused == before - profiling(before)
    assert problems == {"profiling_paused_by_file"}
    (tmp_path / "pause").unlink()
    assert collected(program) == (before, set())


class Unwatches(DcgmLibrary):
    """libdcgm that counts how many watches have ended."""

    count = 0

    def status(self, function, *arguments):
        self.count += function == "dcgmUnwatchFields"
        return super().status(function, *arguments)


def test_the_watch_of_profiling_fields_ends_in_the_engine_and_no_other(tmp_path):
    engine = EngineFixture(tmp_path, document(gpu_spec()))
    libraries = []
    source = engine.source(150, 1004, load=lambda path: libraries.append(Unwatches(path)) or libraries[-1])
    try:
        assert samples_of_gpu(engine.settled(source)) == {150: 40, 1004: 0.25}
        source.want(wanted(150))
        assert samples_of_gpu(engine.settled(source)) == {150: 40}
        assert libraries[0].count == 1
    finally:
        engine.close()
