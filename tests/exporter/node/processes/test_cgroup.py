"""The pod and container of a process, in every layout of control groups, whatever else a path has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.processes.cgroup import ContainerPlace, UnclearCgroupError, container_of

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
PLAIN, LOWER = UID.replace("-", ""), UID.replace("-", "_")
ID, OTHER_ID = "c0ffee" + "0" * 58, "beef" + "1" * 60
OTHER_UID = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9"
SLICE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{LOWER}.slice"

LAYOUTS = {
    "containerd, systemd": f"0::{SLICE}/cri-containerd-{ID}.scope",
    "containerd, systemd, guaranteed": f"0::/kubepods.slice/kubepods-pod{LOWER}.slice/cri-containerd-{ID}.scope",
    "containerd, cgroupfs": f"0::/kubepods/burstable/pod{UID}/{ID}",
    "containerd, cgroupfs, guaranteed": f"0::/kubepods/pod{UID}/{ID}",
    "containerd with cgroupfs below systemd": (
        f"0::/system.slice/containerd.service/kubepods-burstable-pod{LOWER}.slice:cri-containerd:{ID}"
    ),
    "cri-o, systemd": f"0::{SLICE}/crio-{ID}.scope",
    "cri-o with crun": f"0::{SLICE}/crio-{ID}.scope/container",
    "docker, systemd": f"0::{SLICE}/docker-{ID}.scope",
    "podman": f"0::{SLICE}/libpod-{ID}.scope",
    "a kubelet in a container": (
        f"0::/docker/{OTHER_ID}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
        f"/kubelet-kubepods-burstable-pod{LOWER}.slice/cri-containerd-{ID}.scope"
    ),
    "systemd in the container": f"0::{SLICE}/cri-containerd-{ID}.scope/init.scope",
    "seen from another control group namespace": (
        f"0::/../../kubepods-besteffort-pod{LOWER}.slice/cri-containerd-{ID}.scope"
    ),
    "the same with cgroupfs": f"0::/../../pod{UID}/{ID}",
    "static pod": f"0::/kubepods/burstable/pod{PLAIN}/{ID}",
    "version 1": f"12:pids:/kubepods/burstable/pod{UID}/{ID}\n3:cpu,cpuacct:/\n1:name=systemd:/kubepods/pod{UID}/{ID}",
    "version 1 and 2": f"1:name=systemd:{SLICE}/cri-containerd-{ID}.scope\n0::/\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pod_and_container_are_found_in_every_layout(layout):
    assert container_of(LAYOUTS[layout]) == ContainerPlace(PLAIN, ID)


@pytest.mark.parametrize(
    "text",
    [
        "0::/",
        "0::/system.slice/nvidia-persistenced.service\n",
        "0::/user.slice/user-1000.slice/session-3.scope",
        f"0::/system.slice/docker-{ID}.scope",
        "0::/kubepods.slice/kubepods-burstable.slice",
        f"0::/podman/{ID}",
        f"0::/mypod{PLAIN}x/{ID}",
        "",
        "nonsense",
    ],
)
def test_a_process_outside_of_pods_has_none(text):
    assert container_of(text) is None


@pytest.mark.parametrize("tail", ["", f"/crio-conmon-{ID}.scope", "/supervisor", f"/cri-containerd-{ID[:-1]}.scope"])
def test_where_no_container_is_named_the_pod_alone_is_known(tail):
    assert container_of(f"0::{SLICE}{tail}") == ContainerPlace(PLAIN)


@pytest.mark.parametrize(
    "inside",
    [
        f"/kubepods-pod{OTHER_UID.replace('-', '_')}.slice/cri-containerd-{OTHER_ID}.scope",
        f"/kubepods/pod{OTHER_UID}/{OTHER_ID}",
        f"/{OTHER_ID}",
        f"/x:cri-containerd:{OTHER_ID}",
    ],
)
def test_a_process_cannot_name_another_pod_by_groups_that_it_makes_inside_its_own(inside):
    for layout in LAYOUTS.values():
        lines = [
            line + inside if UID in line or LOWER in line or PLAIN in line else line for line in layout.split("\n")
        ]
        assert container_of("\n".join(lines)) == ContainerPlace(PLAIN, ID)
    assert container_of(f"0::{SLICE}/supervisor{inside}") == ContainerPlace(PLAIN)


def test_lines_that_name_two_pods_are_unclear():
    with pytest.raises(UnclearCgroupError, match="2 pods"):
        container_of(f"2:cpu:/kubepods/pod{UID}/{ID}\n1:pids:/kubepods/pod{OTHER_UID}/{ID}")


def test_lines_that_name_two_containers_of_one_pod_leave_the_pod():
    text = f"2:cpu:/kubepods/pod{UID}/{ID}\n1:pids:/kubepods/pod{UID}/{OTHER_ID}"
    assert container_of(text) == ContainerPlace(PLAIN)


UIDS = st.uuids().map(str)
IDS = st.text("0123456789abcdef", min_size=64, max_size=64)
NAMES = st.text(
    st.characters(blacklist_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", codec="utf-8"), max_size=40
)


@given(UIDS, IDS, NAMES, st.sampled_from(["", "docker-", "crio-", "cri-containerd-"]), st.booleans())
def test_whatever_is_behind_the_container_changes_nothing(uid, container, behind, runtime, systemd):
    group = f"/kubepods-pod{uid.replace('-', '_')}.slice" if systemd else f"/kubepods/pod{uid}"
    suffix = ".scope" if systemd else ""
    found = container_of(f"0::{group}/{runtime}{container}{suffix}/{behind}")
    assert found == ContainerPlace(uid.replace("-", ""), container)


@given(st.text(max_size=300))
def test_any_text_is_read_without_a_failure(text):
    try:
        found = container_of(text)
    except UnclearCgroupError:
        return
    assert found is None or len(found.pod_uid) == 32
