"""Which container has which id, from the names of the kubelet's links to logs."""

import os

import pytest

from exporter.node.attribution.matching.attribute import PodContainer
from exporter.node.processes.cgroup import ContainerPlace, plain_uid
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.source import SourceError
from tests.exporter.node.processes.node_files import container_id, log_link, uid

LONG_AGO_NS = 10**18


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def links(folder, now_ns=10**19):
    return ContainerLogLinks(folder, lambda: now_ns)


def found(known, pod, container):
    return known.find(ContainerPlace(plain_uid(uid(pod)), container_id(container)))


def test_each_container_is_found_by_uid_and_id(folder):
    log_link(folder, "team", "train-0", 1, "main", 5)
    log_link(folder, "team", "train-0", 1, "main", 6, run=1)
    log_link(folder, "other", "web-7", 2, "server", 7)
    known = links(folder).read()
    assert found(known, 1, 5) == found(known, 1, 6) == PodContainer("team", "train-0", "main", uid(1))
    assert found(known, 2, 7) == PodContainer("other", "web-7", "server", uid(2))


def test_the_name_of_a_link_may_be_cut_off(folder):
    target = f"/var/log/pods/team_{'p' * 200}_{uid(1)}/main/0.log"
    (folder / f"{'p' * 170}-{container_id(5)}.log").symlink_to(target)
    assert found(links(folder).read(), 1, 5).pod == "p" * 200


def test_of_an_unknown_container_the_pod_is_known_and_of_an_unknown_pod_nothing(folder):
    log_link(folder, "team", "train-0", 1, "main", 5)
    known = links(folder).read()
    assert found(known, 1, 9) == PodContainer("team", "train-0", "", uid(1))
    assert found(known, 3, 5) is None


def test_an_id_of_a_container_of_another_pod_does_not_count(folder):
    log_link(folder, "team", "train-0", 1, "main", 5)
    log_link(folder, "other", "web-7", 2, "server", 7)
    assert found(links(folder).read(), 1, 7) == PodContainer("team", "train-0", "", uid(1))


@pytest.mark.parametrize(
    "target",
    [
        "0.log",
        "/var/log/pods/team_train-0/main/0.log",
        f"/var/log/pods/Team_train-0_{uid(1)}/main/0.log",
        f"/var/log/pods/te am_train-0_{uid(1)}/main/0.log",
        f"/var/log/pods/team_train-0_{uid(1)}/main/0.log.gz",
        f"/var/log/pods/team_train-0_{uid(1)}/../0.log",
        "/var/log/pods/team_train-0_notauid/main/0.log",
    ],
)
def test_what_is_no_link_of_the_kubelet_is_left_out(folder, target):
    (folder / f"train-0_team_main-{container_id(5)}.log").symlink_to(target)
    (folder / f"file-{container_id(6)}.log").write_text("no link")
    (folder / "README").write_text("")
    log_link(folder, "other", "web-7", 2, "server", 7)
    assert {place.container_id for place in links(folder).read().by_place} == {container_id(7)}


def test_a_folder_that_has_not_changed_is_not_read_again(folder):
    log_link(folder, "team", "train-0", 1, "main", 5)
    os.utime(folder, ns=(LONG_AGO_NS, LONG_AGO_NS))
    reader = links(folder)
    first = reader.read()
    assert reader.read() is first
    log_link(folder, "other", "web-7", 2, "server", 7)
    assert found(reader.read(), 2, 7) is not None


def test_a_folder_that_changed_just_now_is_read_again(folder):
    reader = links(folder, now_ns=0)
    assert found(reader.read(), 1, 5) is None
    changed = folder.stat().st_mtime_ns
    log_link(folder, "team", "train-0", 1, "main", 5)
    os.utime(folder, ns=(changed, changed))  # as where the clock of the file system is coarse
    assert found(reader.read(), 1, 5) is not None


def test_without_the_folder_nothing_says_which_pods_there_are(tmp_path):
    with pytest.raises(SourceError, match="No such file") as raised:
        links(tmp_path / "absent").read()
    assert raised.value.reason == "pods_unknown"
