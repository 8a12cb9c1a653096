"""Where processes run, as a folder like /proc says it: reuse of PIDs, ends, and what cannot be read."""

import os

import pytest

from exporter.node.processes.cgroup import ContainerPlace, plain_uid
from exporter.node.processes.proc_folder import LIMIT_BYTES, NoContainer, ProcFolder
from exporter.source import SourceError
from tests.exporter.node.processes.node_files import HOST, ProcFiles, container_id, group, uid


@pytest.fixture
def files(tmp_path):
    return ProcFiles(tmp_path / "proc")


@pytest.fixture
def folder(files):
    return ProcFolder(own=files.folder)


def place(pod, container):
    return ContainerPlace(plain_uid(uid(pod)), container_id(container))


def test_processes_of_pods_of_the_host_and_those_that_have_ended_are_told_apart(files, folder):
    files.run(10, group(1, 5))
    files.run(20, HOST, name="a (strange) name) S 1 2")
    assert folder.places({10, 20, 30}) == {10: place(1, 5), 20: NoContainer.HOST, 30: NoContainer.ENDED}


def test_a_pid_that_is_used_again_is_another_process(files, folder):
    files.run(10, group(1, 5), started=1000)
    assert folder.places({10}) == {10: place(1, 5)}
    files.run(10, group(2, 6), started=1000)
    assert folder.places({10}) == {10: place(1, 5)}  # the same process: what is known of it is not read again
    files.run(10, group(2, 6), started=2000)
    assert folder.places({10}) == {10: place(2, 6)}


def test_what_is_known_of_processes_that_are_not_listed_any_more_is_forgotten(files, folder):
    files.run(10, group(1, 5))
    folder.places({10})
    folder.places(set())
    assert folder._known == {}


@pytest.mark.parametrize("stat", ["", "10 (x)", "10 (x) S 1 2 3", "x" * (LIMIT_BYTES + 1)])
def test_a_process_with_a_strange_stat_is_unreadable(files, folder, stat):
    files.run(10, group(1, 5))
    (files.folder / "10" / "stat").write_text(stat)
    assert folder.places({10}) == {10: NoContainer.UNREADABLE}


def test_a_control_group_that_is_too_long_or_names_two_pods_is_unreadable(files, folder):
    files.run(10, group(1, 5) * 1000)
    files.run(11, group(1, 5) + group(2, 5))
    assert set(folder.places({10, 11}).values()) == {NoContainer.UNREADABLE}


def test_a_process_that_ends_while_it_is_read_is_not_there(files, folder, monkeypatch):
    files.run(10, group(1, 5))
    (files.folder / "10" / "cgroup").unlink()
    assert folder.places({10}) == {10: NoContainer.ENDED}


def test_in_the_pid_namespace_of_the_node_every_process_is_seen(folder):
    folder.check()
    assert folder.shows_every_process()


def test_in_a_pid_namespace_of_its_own_no_process_is_seen(tmp_path):
    own = ProcFiles(tmp_path / "own", namespace="pid:[4026532999]")
    with pytest.raises(SourceError) as raised:
        ProcFolder(own=own.folder).check()
    assert raised.value.reason == "processes_not_visible"


def test_where_processes_of_others_are_hidden_that_is_said(files, folder):
    files.end(1)  # as with hidepid=2
    with pytest.raises(SourceError, match="process 1") as raised:
        folder.check()
    assert raised.value.reason == "proc_unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_where_processes_of_others_cannot_be_read_that_is_said(files, folder):
    (files.folder / "1" / "cgroup").chmod(0)  # as with hidepid=1
    with pytest.raises(SourceError, match="process 1"):
        folder.check()


def test_a_folder_that_is_missing_is_unreadable(tmp_path, files):
    with pytest.raises(SourceError) as raised:
        ProcFolder(tmp_path / "absent", own=files.folder).check()
    assert raised.value.reason == "proc_unreadable"


def test_a_mounted_folder_of_another_namespace_shows_foreign_processes_and_none_of_our_own(tmp_path):
    own = ProcFiles(tmp_path / "own", namespace="pid:[4026532999]", own=7)
    node = ProcFiles(tmp_path / "node", own=4711)
    own.run(12, HOST)
    node.run(12, group(1, 5))
    node.run(9000, group(2, 6))
    folder = ProcFolder(node.folder, own=own.folder)
    folder.check()
    assert not folder.shows_every_process()
    assert folder.places({12, 9000}) == {12: NoContainer.ENDED, 9000: place(2, 6)}


def test_a_named_folder_of_the_same_namespace_shows_every_process(files):
    folder = ProcFolder(files.folder, own=files.folder)
    folder.check()
    assert folder.shows_every_process()
