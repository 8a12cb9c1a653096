"""The scheduler's messages, in the wordings of many versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.scheduling.message import Cause, causes
from exporter.gpu_names import gpu_resources

GPUS = gpu_resources()
NONE_FOUND = "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
MIXED = (
    "preemption: 0/5 nodes are available: 2 Preemption is not helpful for scheduling, "
    "3 No preemption victims found for incoming pod."
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # 1.20, as a real scheduler wrote it
        (
            (
                "0/6 nodes are available: 1 Insufficient cpu, 1 node(s) had taint {nvidia.com/gpu: }, that the pod "
                "didn't tolerate, 1 node(s) were unschedulable, 4 Insufficient nvidia.com/gpu."
            ),
            {Cause.CPU_OR_MEMORY, Cause.TAINT, Cause.NODE_UNAVAILABLE, Cause.GPU},
        ),
        ('0/6 nodes are available: 6 persistentvolumeclaim "nope" not found.', {Cause.OTHER}),
        ("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity.", {Cause.SELECTOR}),
        ("0/2 nodes are available: 2 node(s) didn't match node selector.", {Cause.SELECTOR}),
        # 1.24 to 1.34
        (
            (
                "0/5 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 3 Insufficient "
                f"nvidia.com/gpu. {MIXED}"
            ),
            {Cause.SELECTOR, Cause.GPU},
        ),
        (
            (
                "0/5 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
                f"4 Insufficient nvidia.com/mig-1g.10gb. {MIXED}"
            ),
            {Cause.TAINT, Cause.GPU},
        ),
        (
            f"0/5 nodes are available: 5 node(s) had untolerated taint {{nvidia.com/gpu: present}}. {NONE_FOUND}",
            {Cause.TAINT},
        ),
        (
            (
                "0/5 nodes are available: 5 Insufficient memory, 5 Insufficient cpu. preemption: not eligible due to "
                "preemptionPolicy=Never."
            ),
            {Cause.CPU_OR_MEMORY},
        ),
        (
            f"0/5 nodes are available: 2 Too many pods, 3 Insufficient ephemeral-storage. {NONE_FOUND}",
            {Cause.CPU_OR_MEMORY},
        ),
        (f"0/5 nodes are available: 5 Insufficient hugepages-2Mi. {NONE_FOUND}", {Cause.CPU_OR_MEMORY}),
        (f"0/5 nodes are available: 5 Insufficient rdma/hca_a. {NONE_FOUND}", {Cause.OTHER}),
        (f"0/5 nodes are available: 5 node(s) had volume node affinity conflict. {NONE_FOUND}", {Cause.OTHER}),
        (
            f"0/5 nodes are available: 5 node(s) didn't match PersistentVolume's node affinity. {NONE_FOUND}",
            {Cause.OTHER},
        ),
        (
            f"0/5 nodes are available: 5 node(s) didn't match pod topology spread constraints. {NONE_FOUND}",
            {Cause.OTHER},
        ),
        (
            f"0/5 nodes are available: 5 node(s) didn't match pod anti-affinity rules. {NONE_FOUND}",
            {Cause.POD_AFFINITY},
        ),
        (f"0/5 nodes are available: 5 node(s) didn't match pod affinity rules. {NONE_FOUND}", {Cause.POD_AFFINITY}),
        (
            f"0/5 nodes are available: 5 node(s) didn't satisfy existing pods anti-affinity rules. {NONE_FOUND}",
            {Cause.POD_AFFINITY},
        ),
        (f"0/5 nodes are available: 5 node(s) didn't match the requested node name. {NONE_FOUND}", {Cause.SELECTOR}),
        (
            (
                "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are "
                "available: 3 Preemption is not helpful for scheduling."
            ),
            {Cause.OTHER},
        ),
        # 1.34: another plugin writes before preemption
        (
            (
                "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/3 "
                "nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for "
                "scheduling."
            ),
            {Cause.GPU},
        ),
        # 1.35 and 1.36: taints without keys
        (
            (
                "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node "
                "affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is "
                "not helpful for scheduling."
            ),
            {Cause.TAINT, Cause.SELECTOR},
        ),
        ("0/3 nodes are available: 3 node(s) didn't match Pod's required features. " + NONE_FOUND, {Cause.OTHER}),
        (
            (
                "0/4 nodes are available: 4 cannot allocate all claims. still not schedulable, preemption: 0/4 nodes "
                "are available: 4 Preemption is not helpful for scheduling."
            ),
            {Cause.OTHER},
        ),
        # preemption that was tried repeats the texts of nodes, which are not causes of this pod
        (
            (
                "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}. preemption: 0/2 nodes are available: "
                "2 Insufficient nvidia.com/gpu."
            ),
            {Cause.TAINT},
        ),
        ("no nodes available to schedule pods", {Cause.OTHER}),
        ("running PreBind plugin failed", {Cause.OTHER}),
        ("", set()),
        # Volcano
        ("0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu.", {Cause.GPU}),
        ("all nodes are unavailable: 3 node(s) pod number exceeded.", {Cause.CPU_OR_MEMORY}),
        ("2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable", {Cause.OTHER}),
    ],
)
def test_a_message_names_these_causes(message, expected):
    assert causes(message, GPUS) == expected


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text):
    causes(text, GPUS)
    causes("0/5 nodes are available: " + text, GPUS)


@given(
    st.lists(
        st.sampled_from(
            [
                ("Insufficient nvidia.com/gpu", Cause.GPU),
                ("Insufficient cpu", Cause.CPU_OR_MEMORY),
                ("node(s) had taint {k: v}, that the pod didn't tolerate", Cause.TAINT),
                ("node(s) had untolerated taint {k: v}", Cause.TAINT),
                ("node(s) were unschedulable", Cause.NODE_UNAVAILABLE),
                ("node(s) had no available volume zone", Cause.OTHER),
                ("node(s) didn't match Pod's node affinity/selector", Cause.SELECTOR),
            ]
        ),
        min_size=1,
        unique=True,
    )
)
def test_every_cause_of_a_histogram_is_found(entries):
    histogram = ", ".join(f"{count} {text}" for count, (text, _) in enumerate(entries, 1))
    assert causes(f"0/9 nodes are available: {histogram}. {NONE_FOUND}", GPUS) == {cause for _, cause in entries}
