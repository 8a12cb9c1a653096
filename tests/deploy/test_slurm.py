"""Slurm's prolog and epilog write what the exporter reads, and never make Slurm drain a node."""

import subprocess

import pytest

from exporter.node.attribution.jobs.hpc_job_files import JobFiles, read_folder
from tests.deploy.manifests import ROOT


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "jobs"


def run(script, folder, **variables):
    environment = {"PATH": "/usr/bin:/bin", "GPUGAUGE_JOBS": str(folder), **variables}
    command = ["sh", ROOT / f"deploy/slurm/{script}.sh"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def files(folder):
    return {path.name: path.read_text().split() for path in folder.iterdir()}


def test_a_job_is_in_the_file_of_each_of_its_gpus_until_it_ends(folder):
    run("prolog", folder, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0,1")
    run("prolog", folder, SLURM_JOB_ID="42", SLURM_JOB_GPUS="1-3")
    assert files(folder) == {"0": ["41"], "1": ["41", "42"], "2": ["42"], "3": ["42"]}
    run("epilog", folder, SLURM_JOB_ID="42")
    assert files(folder) == {"0": ["41"], "1": ["41"]}


def test_a_prolog_that_runs_twice_notes_the_job_once(folder):
    for _ in range(2):
        run("prolog", folder, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0")
    assert files(folder) == {"0": ["41"]}


@pytest.mark.parametrize("variables", [{}, {"SLURM_JOB_ID": "41"}, {"SLURM_JOB_ID": "41", "SLURM_JOB_GPUS": "any"}])
def test_a_job_without_gpus_changes_nothing(folder, variables):
    run("prolog", folder, **variables)
    run("epilog", folder, **variables)
    assert files(folder) == {}


def test_a_folder_that_cannot_be_made_fails_no_job(tmp_path):
    (tmp_path / "file").touch()
    variables = {"PATH": "/usr/bin:/bin", "GPUGAUGE_JOBS": str(tmp_path / "file/jobs"), "SLURM_JOB_GPUS": "0"}
    for script in ("prolog", "epilog"):
        command = ["sh", ROOT / f"deploy/slurm/{script}.sh"]
        assert subprocess.run(command, env=variables, capture_output=True, check=False).returncode == 0


def test_the_exporter_reads_them(folder):
    run("prolog", folder, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0,2")
    assert read_folder(folder) == JobFiles({"0": ("41",), "2": ("41",)})
