"""Whether replicas are shared by MPS: as chosen, else where its control daemon has a pipe."""

import os
import socket

import pytest

from exporter.node.attribution.matching.mps import replica_sharing


def test_what_is_chosen_counts(tmp_path):
    os.mkfifo(tmp_path / "control")
    assert replica_sharing("time-slicing", tmp_path) == "time-slicing"
    assert replica_sharing("mps", tmp_path / "absent") == "mps"


@pytest.mark.parametrize("folder", ["nvidia.com/gpu/pipe", "nvidia.com/gpu.shared/pipe", "pipe", "."])
def test_the_pipe_of_a_control_daemon_shows_mps(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    assert replica_sharing("auto", tmp_path) == "time-slicing"
    os.mkfifo(tmp_path / folder / "control")
    assert replica_sharing("auto", tmp_path) == "mps"


def test_the_pipe_may_be_a_socket(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "control"))
        assert replica_sharing("auto", tmp_path) == "mps"


def test_a_file_or_a_folder_that_is_missing_is_no_pipe(tmp_path):
    (tmp_path / "control").write_text("")
    assert replica_sharing("auto", tmp_path) == "time-slicing"
    assert replica_sharing("auto", tmp_path / "absent") == "time-slicing"
