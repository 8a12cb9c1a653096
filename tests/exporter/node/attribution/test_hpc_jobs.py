"""A device has the label of the one HPC job that has it; of several jobs it has none, and nothing is repeated."""

import os
import threading

import pytest

from exporter import cli
from exporter.node.attribution.jobs.hpc_job_files import (
    MAX_FILE_BYTES,
    HpcJobReason,
    JobFilesReader,
    read_folder,
)
from exporter.node.attribution.jobs.hpc_jobs import job_info, jobs_of, with_job
from exporter.node.config import node_config
from exporter.node.devices.entities.device import Device
from exporter.node.program import NodeProgram
from tests.waiting import until


def device(index, gi=-1, ci=-1):
    return Device(f"GPU-{index}", index, "00000000:07:00.0", index, "NVIDIA H100", gi=gi, ci=ci)


INVENTORY = (device(0), device(1), device(1, 7), device(1, 9, 0), device(1, 9, 1), device(2))
JOBS = {"0": ("a",), "1.7": ("b",), "1.9": ("c",), "2": ("d", "e")}


def test_a_mig_device_has_the_jobs_of_its_gpu_instance_and_a_gpu_those_of_its_own_file():
    assert [jobs_of(each, JOBS) for each in INVENTORY] == [("a",), (), ("b",), ("c",), ("c",), ("d", "e")]
    assert jobs_of(device(1, 7), {"1": ("x",)}) == ()


def test_only_a_device_of_one_job_has_the_label():
    rows = [(("DCGM_FI_DRIVER_VERSION", "580.1"),)] + [()] * 5
    found = with_job(rows, INVENTORY, JOBS)
    assert found[0] == (("DCGM_FI_DRIVER_VERSION", "580.1"), ("hpc_job", "a"))
    assert found[1:] == [(), (("hpc_job", "b"),), (("hpc_job", "c"),), (("hpc_job", "c"),), ()]


def test_every_pair_of_a_device_and_a_job_is_in_the_info_metric():
    labels = [dict(each.pairs) for each, _ in job_info(INVENTORY, JOBS, "n").samples]
    assert [(each["gpu"], each.get("GPU_I_ID"), each["hpc_job"]) for each in labels] == [
        ("0", None, "a"),
        ("1", "7", "b"),
        ("1", "9", "c"),
        ("1", "9", "c"),
        ("2", None, "d"),
        ("2", None, "e"),
    ]


def test_a_file_has_one_job_per_line(tmp_path):
    (tmp_path / "0").write_text(" 1234_7 \n\n1234_7\r\n1235")
    (tmp_path / "1.10").write_text("x\n")
    (tmp_path / "2").write_text("")
    for other in ("note", "0.1.2", "-1", "3.", ".4", "0~"):
        (tmp_path / other).write_text("no\n")
    found = read_folder(tmp_path)
    assert found.jobs == {"0": ("1234_7", "1235"), "1.10": ("x",), "2": ()}
    assert found.problems == ()


def test_what_cannot_be_read_costs_itself(tmp_path):
    (tmp_path / "0").write_text("good\n")
    (tmp_path / "1").write_bytes(b"good\n\xff\n" + b"x" * 300 + b"\nlast")
    (tmp_path / "2").mkdir()
    os.mkfifo(tmp_path / "3")
    (tmp_path / "4").write_bytes(b"x\n" * MAX_FILE_BYTES)
    (tmp_path / "5").symlink_to("nowhere")
    found = read_folder(tmp_path)
    assert found.jobs == {"0": ("good",), "1": ("good", "last")}
    assert {reason for reason, _ in found.problems} == {HpcJobReason.FILE_UNREADABLE}
    assert [message.removeprefix(f"{tmp_path}/") for _, message in found.problems] == [
        "1, line 2: not UTF-8",
        "1, line 3: more than 256 characters",
        "2: it is a directory, not a regular file",
        "3: it is a FIFO, not a regular file",
        "4: it has more than 16384 bytes",
        "5: No such file or directory",
    ]


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_text("")], ids=["missing", "file"])
def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path, make):
    make(tmp_path / "jobs")
    found = read_folder(tmp_path / "jobs")
    assert found.jobs == {}
    ((reason, message),) = found.problems
    assert (reason, message.startswith(f"{tmp_path}/jobs: ")) == (HpcJobReason.FOLDER_UNREADABLE, True)


def test_a_folder_that_hangs_is_a_problem_until_it_answers(tmp_path):
    (tmp_path / "0").write_text("job\n")
    hang = threading.Event()

    def start(function):
        threading.Thread(target=lambda: (hang.wait(), function()), daemon=True).start()

    reader = JobFilesReader(tmp_path, patience=0.02, start=start)
    for _ in range(2):
        found = reader.read()
        assert (found.jobs, [reason for reason, _ in found.problems]) == ({}, [HpcJobReason.FOLDER_SLOW])
    hang.set()
    assert until(lambda: reader.read().jobs) == {"0": ("job",)}


@pytest.fixture
def program(tmp_path):
    flags = ["--source", "simulated", "-c", "5000", "--hpc-job-mapping-dir", str(tmp_path)]
    made = NodeProgram(node_config(cli.parse(flags, {}), {"NODE_NAME": "n"}))
    yield made
    made.close()


def jobs_by_gpu(snapshot, name):
    families = [family for family in snapshot.families if family.metric.name == name]
    labels = [dict(each.pairs) for family in families for each, _ in family.samples]
    return [(each["gpu"], each.get("hpc_job", "")) for each in labels]


def test_a_running_exporter_takes_up_what_prolog_and_epilog_write(program, tmp_path):
    until(lambda: program.collect().health[0].up)
    assert {job for _, job in jobs_by_gpu(program.collect(), "DCGM_FI_DEV_GPU_TEMP")} == {""}
    (tmp_path / "1").write_text("42\n")
    (tmp_path / "2").write_text("42\n43\n")
    (tmp_path / "3").mkdir()
    snapshot = program.collect()
    found = jobs_by_gpu(snapshot, "DCGM_FI_DEV_GPU_TEMP")
    assert len(found) == 8
    assert [pair for pair in found if pair[1]] == [("1", "42")]
    assert jobs_by_gpu(snapshot, "gpugauge_hpc_job_info") == [("1", "42"), ("2", "42"), ("2", "43")]
    assert [(each.source, each.reason) for each in snapshot.problems] == [("hpc_jobs", "file_unreadable")]
    (tmp_path / "1").unlink()
    assert ("1", "42") not in jobs_by_gpu(program.collect(), "DCGM_FI_DEV_GPU_TEMP")
