"""Checks of engines, sources and GPUs, from what each source answered."""

import pytest

from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.entities.component_selection import SelectionReason
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.readings.mig_layout import MigReason
from exporter.node.doctor import sources
from exporter.node.doctor.attempts import candidates, reason_of
from exporter.node.doctor.examination import SourceAttempt
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.nvml.native.reasons import NvmlReason
from tests.exporter.node.doctor.nodes import GPU_UUID, config, examination, finding, findings, gpu, read

ENGINES = "engines on this node"


@pytest.mark.parametrize(
    ("words", "engine", "others", "expected"),
    [
        (("--source", "auto"), "unix:///engine", (7,), ["host engine", "nvml"]),
        (("--source", "auto"), None, (), ["embedded engine", "nvml"]),
        (("--source", "auto"), None, (7,), ["nvml"]),
        (("--source", "dcgm"), None, (), ["embedded engine"]),
        (("--source", "dcgm"), None, (7,), []),
        (("--source", "dcgm"), "unix:///engine", (), []),
        (("-r", "host:5555"), "host:5555", (), ["host engine"]),
        (("--source", "nvml"), None, (), ["nvml"]),
        (("--source", "simulated"), None, (), ["simulated"]),
    ],
)
def test_the_sources_of_a_configuration_are_read_and_no_second_engine_is_started(words, engine, others, expected):
    found = list(candidates(config(*words), (), engine, others))
    assert [each.candidate for each in found] == expected
    assert {each.reader.remote for each in found if each.candidate == "host engine"} <= {engine}


def test_the_selected_components_are_read_and_one_that_is_missing_has_its_remedy():
    found = list(candidates(config("--source", "auto", "-s", "g:1"), (), "unix:///engine", ()))
    assert {each.reader.selections.switches for each in found} == {Selection((1,), None)}
    assert reason_of("host engine", "selected_missing") is SelectionReason.SELECTED_MISSING
    assert reason_of("simulated", "selected_missing") is SelectionReason.SELECTED_MISSING


def test_the_engine_that_is_read_from_is_no_second_one(node):
    node.process(7, "nv-hostengine", "-n")
    examined = examination(node, engine="unix:///tmp/nv-hostengine", others=(7,))
    assert finding(sources, ENGINES, examined) == ("ok", None, "one host engine: nv-hostengine (7)")


def test_auto_avoids_a_second_engine_and_dcgm_cannot(node):
    node.process(7, "/usr/bin/dcgm-exporter", "--token=secret")
    examined = examination(node, "--source", "auto", others=(7,))
    assert finding(sources, ENGINES, examined)[:2] == ("note", DoctorReason.SECOND_ENGINE)
    examined = examination(node, "--source", "dcgm", others=(7,))
    assert finding(sources, ENGINES, examined) == (
        "failed",
        DoctorReason.SECOND_ENGINE,
        "/usr/bin/dcgm-exporter (7)",
    )


def test_a_host_engine_that_listens_is_not_left_beside_an_embedded_one(node):
    examined = examination(node, "--source", "dcgm", engine="unix:///tmp/nv-hostengine")
    status, reason, detail = finding(sources, ENGINES, examined)
    assert (status, reason) == ("failed", DoctorReason.SECOND_ENGINE)
    assert detail == "a host engine listens at unix:///tmp/nv-hostengine, and -r does not name it"


def test_two_engines_are_a_failure_whatever_is_configured(node):
    node.process(7, "nv-hostengine")
    node.process(8, "/usr/bin/dcgm-exporter")
    examined = examination(node, engine="unix:///tmp/nv-hostengine", others=(7, 8))
    assert finding(sources, ENGINES, examined)[:2] == ("failed", DoctorReason.SECOND_ENGINE)


def test_the_engine_of_a_running_gpugauge_is_no_second_one(node):
    node.process(7, "python", "-m", "exporter.node.reader", "text", "info")
    examined = examination(node, "--source", "dcgm", others=(7,))
    assert finding(sources, ENGINES, examined)[0] == "note"
    assert finding(sources, "source", examined)[0] == "skipped"


def unreachable(candidate, reason=NvmlReason.LIBRARY_MISSING, address=""):
    return SourceAttempt(candidate, address, reason=reason, message="why")


def test_a_source_that_does_not_work_is_a_failure_only_where_none_does(node):
    alone = examination(node, attempts=(unreachable("nvml"),))
    assert finding(sources, "source", alone) == ("failed", NvmlReason.LIBRARY_MISSING, "nvml: why")
    beside = examination(node, attempts=(unreachable("embedded engine", DcgmReason.LIBRARY_MISSING), read(gpu())))
    assert [str(each.status) for each in findings(sources, "source", beside)] == ["note", "ok"]


def test_a_host_engine_that_is_named_or_mute_is_a_failure_although_another_source_works(node):
    lost = unreachable("host engine", DcgmReason.CONNECTION_LOST, "localhost:5555")
    named = examination(node, "-r", "localhost:5555", "--source", "auto", attempts=(lost, read(gpu())))
    assert findings(sources, "source", named)[0].status == "failed"
    mute = unreachable("host engine", DoctorReason.ENGINE_MUTE, "unix:///tmp/nv-hostengine")
    found = findings(sources, "source", examination(node, attempts=(mute, read(gpu()))))
    assert (str(found[0].status), found[0].reason) == ("failed", DoctorReason.ENGINE_MUTE)


def test_gpus_that_are_down_or_missing_are_failures(node):
    down = examination(node, attempts=(read(gpu(), down=(GPU_UUID,)),))
    assert finding(sources, "GPUs", down) == ("failed", DoctorReason.GPUS_DOWN, GPU_UUID)
    node.gpus(3)
    missing = examination(node, attempts=(read(gpu()),))
    assert finding(sources, "GPUs", missing) == ("failed", DoctorReason.GPUS_MISSING, "1 of 3")
    expected = examination(node, "--expected-gpus", "4", attempts=(read(gpu(0), gpu(1), gpu(2)),))
    assert finding(sources, "GPUs", expected)[2] == "3 of 4"


def test_a_container_that_was_given_one_of_the_nodes_gpus_misses_none(node):
    node.gpu("0000:07:00.0", number=0)
    node.gpu("0000:08:00.0", number=1)
    (node.folder / "dev/nvidia1").unlink()
    assert finding(sources, "GPUs", examination(node, attempts=(read(gpu()),)))[2] == "1 of 1 can be read"


def test_a_problem_that_can_be_mended_is_a_failure_and_another_is_a_note(node):
    problems = (("profiling_no_permission", "no"), ("profiling_not_supported", "old"), ("nonsense", "new"))
    examined = examination(node, attempts=(read(gpu(), candidate="embedded engine", problems=problems),))
    assert [(str(each.status), each.reason, each.detail) for each in findings(sources, "problems", examined)] == [
        ("failed", DcgmReason.PROFILING_NO_PERMISSION, "no"),
        ("note", DcgmReason.PROFILING_NOT_SUPPORTED, "old"),
        ("note", DoctorReason.CHECK_FAILED, "new"),
    ]


def test_mig_mode_without_instances_or_without_compute_instances_is_a_failure(node):
    instance = gpu(1, mig_enabled=True, gi=2, profile="1g.10gb")
    examined = examination(node, attempts=(read(gpu(0, mig_enabled=True), gpu(1, mig_enabled=True), instance),))
    assert [(each.reason, each.detail) for each in findings(sources, "MIG", examined)] == [
        (MigReason.MIG_WITHOUT_INSTANCES, f"without instances: GPU 0 ({GPU_UUID})"),
        (MigReason.MIG_WITHOUT_COMPUTE_INSTANCES, "GPU 1 instance 2"),
    ]


def test_complete_mig_devices_and_none_at_all_are_fine(node):
    instance = gpu(0, mig_enabled=True, gi=2, profile="1g.10gb", mig_uuids=("MIG-1",))
    examined = examination(node, attempts=(read(gpu(0, mig_enabled=True), instance),))
    assert finding(sources, "MIG", examined) == ("ok", None, "1 MIG-enabled GPU")
    assert finding(sources, "MIG", examination(node, attempts=(read(gpu()),)))[2] == "no GPU is in MIG mode"


@pytest.mark.parametrize("name", ["GPUs", "problems", "MIG"])
def test_without_a_source_nothing_is_said_of_the_gpus(node, name):
    assert finding(sources, name, examination(node)) == ("skipped", None, "nothing was read")
