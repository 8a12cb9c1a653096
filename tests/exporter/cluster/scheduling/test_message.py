"""The schedulers' messages, in the wordings of many versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.scheduling.reasons.message import parse
from exporter.cluster.scheduling.reasons.wordings import ANYWHERE, PLUGINS, STARTS, Cause
from exporter.gpu_names import gpu_resources

GPUS = gpu_resources()
NONE_FOUND = "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
MIXED = (
    "preemption: 0/5 nodes are available: 2 Preemption is not helpful for scheduling, "
    "3 No preemption victims found for incoming pod."
)
NOT_HELPFUL = "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."

OF_NODES = [
    # resources
    ("Insufficient nvidia.com/gpu", Cause.GPU),
    ("Insufficient nvidia.com/mig-1g.10gb", Cause.GPU),
    ("Insufficient nvidia.com/gpus", Cause.GPU),
    ("Insufficient nvidia.com/gpumem", Cause.GPU),
    ("Insufficient volcano.sh/vgpu-memory", Cause.GPU),
    ("Insufficient cpu", Cause.CPU_OR_MEMORY),
    ("Insufficient memory", Cause.CPU_OR_MEMORY),
    ("Insufficient hugepages-2Mi", Cause.CPU_OR_MEMORY),
    ("Insufficient ephemeral-storage", Cause.OTHER_RESOURCE),
    ("Insufficient rdma/hca_a", Cause.OTHER_RESOURCE),
    ("Too many pods", Cause.OTHER_RESOURCE),
    ("cannot fit resource", Cause.DEVICE_CLAIM),
    ("Pod has a restartable init container and the SidecarContainers feature is disabled", Cause.NO_WORD),
    # nodes: to 1.23, 1.24 to 1.34, from 1.35
    ("node(s) had taint {nvidia.com/gpu: }, that the pod didn't tolerate", Cause.TAINT),
    ("node(s) had taints that the pod didn't tolerate", Cause.TAINT),
    ("node(s) had untolerated taint {dedicated: team-a}", Cause.TAINT),
    ("node(s) had untolerated taint(s)", Cause.TAINT),
    ("node(s) were unschedulable", Cause.NODE_UNAVAILABLE),
    ("node(s) had unknown conditions", Cause.NODE_UNAVAILABLE),
    ("node(s) were not ready", Cause.NODE_UNAVAILABLE),
    ("node(s) didn't match node selector", Cause.SELECTOR),
    ("node(s) didn't match Pod's node affinity", Cause.SELECTOR),
    ("node(s) didn't match Pod's node affinity/selector", Cause.SELECTOR),
    ("node(s) didn't match scheduler-enforced node affinity", Cause.SELECTOR),
    ("node(s) didn't match the requested node name", Cause.SELECTOR),
    ("pod affinity terms conflict", Cause.SELECTOR),
    ("node(s) didn't match pod affinity rules", Cause.POD_AFFINITY),
    ("node(s) didn't match pod affinity/anti-affinity rules", Cause.POD_AFFINITY),
    ("node(s) didn't match pod anti-affinity rules", Cause.POD_AFFINITY),
    ("node(s) didn't satisfy existing pods anti-affinity rules", Cause.POD_AFFINITY),
    ("node(s) didn't match pod topology spread constraints", Cause.TOPOLOGY),
    ("node(s) didn't match pod topology spread constraints (missing required label)", Cause.TOPOLOGY),
    ("node(s) didn't have free ports for the requested pod ports", Cause.NO_WORD),
    ("node(s) didn't match Pod's required features", Cause.NO_WORD),
    # volumes
    ('persistentvolumeclaim "nope" not found', Cause.VOLUME),
    ("node(s) didn't find available persistent volumes to bind", Cause.VOLUME),
    ("node(s) did not have enough free storage", Cause.VOLUME),
    ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Cause.VOLUME),
    ("node(s) had volume node affinity conflict", Cause.VOLUME),
    ("node(s) didn't match PersistentVolume's node affinity", Cause.VOLUME),
    ("node(s) had no available volume zone", Cause.VOLUME),
    ("node(s) had no available disk", Cause.VOLUME),
    ("node(s) exceed max volume count", Cause.VOLUME),
    ("csi.example.com CSI driver is not installed on the node", Cause.VOLUME),
    (
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        Cause.VOLUME,
    ),
    (
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        ),
        Cause.VOLUME,
    ),
    # claims
    ("cannot allocate all claims", Cause.DEVICE_CLAIM),
    ("cannot schedule extended resource claim", Cause.DEVICE_CLAIM),
    ("asked by caller to stop allocating devices: timed out", Cause.DEVICE_CLAIM),
    ("invalid resource pools were encountered", Cause.DEVICE_CLAIM),
    ("resourceclaim not available on the node", Cause.CLAIM),
    ("node allocatable resource claim ns/c shared by multiple pods", Cause.CLAIM),
    ("pod level request for cpu is insufficient for claim c", Cause.CLAIM),
    # Volcano
    ("node(s) pod number exceeded", Cause.OTHER_RESOURCE),
    ("node(s) resource fit failed", Cause.SOME_RESOURCE),
    (
        (
            "plugin InterPodAffinity predicates failed node(s) didn't match pod affinity/anti-affinity, node(s) didn't "
            "match pod affinity rules"
        ),
        Cause.POD_AFFINITY,
    ),
    # HAMi, as an extender
    ("node unregistered", Cause.GPU_UNAVAILABLE),
    ("NodeInsufficientDevice", Cause.GPU),
    ("NodeUnfitPod", Cause.GPU),
    ("AllocatedCardsInsufficientRequest", Cause.GPU),
    ("1/8 CardTimeSlicingExhausted", Cause.GPU),
    ("CardComputeUnitsExhausted", Cause.GPU),
    ("nodes CardInsufficientMemory(node-a,node-b)", Cause.GPU),
    ("CardInsufficientCore", Cause.GPU),
    ("ExclusiveDeviceAllocateConflict", Cause.GPU),
    ("CardMigTopologyInfeasible", Cause.GPU),
    ("CardTypeMismatch", Cause.SELECTOR),
    ("CardUuidMismatch", Cause.SELECTOR),
    ("CardNotFoundCustomFilterRule", Cause.SELECTOR),
    ("ModeNotFit", Cause.SELECTOR),
    ("NumaNotFit", Cause.TOPOLOGY),
    ("8/8 CardNotHealth", Cause.GPU_UNAVAILABLE),
    ("CardCordoned", Cause.GPU_UNAVAILABLE),
    ("ResourceQuotaNotFit", Cause.QUOTA),
    # nodes that a plugin has ruled out at once
    ("node(s) didn't satisfy plugin(s) [VolumeBinding]", Cause.VOLUME),
    ("node(s) didn't satisfy plugin(s) [NodeAffinity DynamicResources]", Cause.CLAIM),
    ("node(s) didn't satisfy plugin(s) [Something]", Cause.NO_WORD),
]
"""Texts that are counted over nodes."""

OF_PODS = [
    ("no nodes available to schedule pods", Cause.NODE_UNAVAILABLE),
    ("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.", Cause.VOLUME),
    ('0/3 nodes are available: persistentvolumeclaim "x" is being deleted.', Cause.VOLUME),
    ('0/3 nodes are available: persistentvolumeclaim "x" bound to non-existent persistentvolume "y".', Cause.VOLUME),
    (
        '0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v".',
        Cause.VOLUME,
    ),
    ('0/3 nodes are available: persistentvolume "disk" not found.', Cause.VOLUME),
    ('0/3 nodes are available: storageclass.storage.k8s.io "fast" not found.', Cause.VOLUME),
    ('0/3 nodes are available: VolumeBindingMode not set for StorageClass "fast".', Cause.VOLUME),
    ("0/3 nodes are available: PersistentVolumeClaim had no pv name and storageClass name.", Cause.VOLUME),
    ("0/3 nodes are available: PersistentVolume had no name.", Cause.VOLUME),
    ('0/3 nodes are available: resourceclaim "x" is being deleted.', Cause.CLAIM),
    (
        "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container c",
        Cause.CLAIM,
    ),
    ('0/3 nodes are available: resourceclaim.resource.k8s.io "x" not found.', Cause.CLAIM),
    ("0/3 nodes are available: resource claim ns/n is in the process of being allocated.", Cause.CLAIM),
    ("0/3 nodes are available: request gpu: device class gpu.nvidia.com does not exist.", Cause.CLAIM),
    ("0/3 nodes are available: pod ns/p: ResourceClaim not created yet.", Cause.CLAIM),
    ("0/3 nodes are available: ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner).", Cause.CLAIM),
    ("0/3 nodes are available: claim c, request r: unknown request type.", Cause.CLAIM),
    (
        "0/3 nodes are available: node(s) didn't satisfy plugins [NodeAffinity VolumeBinding] simultaneously.",
        Cause.VOLUME,
    ),
    ("All PostFilter plugins are skipped", Cause.NO_WORD),
    # groups of Kubernetes itself, 1.35 and 1.36
    ("waiting for minCount pods from a gang to appear in scheduling queue", Cause.GANG),
    ("waiting for minCount pods from a gang to be scheduled", Cause.GANG),
    ('waiting for pods\'s pod group "g" to appear in scheduling queue', Cause.GANG),
    ("pod group is unschedulable, minCount (3) is not satisfiable: 2 scheduled, 0 remaining", Cause.GANG),
    ("0/2 placements are available, first placement status: 0/3 nodes are available: 3 Insufficient cpu.", Cause.GANG),
    ("no feasible placements found", Cause.GANG),
    ("pod group is waiting for preemption to complete", Cause.PREEMPTING),
    # 1.37
    ("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining", Cause.GANG),
    ("minCount (3) is not yet satisfied: 2 scheduled, 1 remaining", Cause.GANG),
    ('waiting for composite pod group "g" tree to meet quorum', Cause.GANG),
    ('waiting for composite pod group "g" to appear in scheduling queue', Cause.GANG),
    ("failed to build hierarchy snapshot: composite pod group object not found in state for podgroup/a/g", Cause.GANG),
    ("waiting for the preemption for this pod to be finished", Cause.PREEMPTING),
    # scheduler-plugins
    ("pre-filter pod p cannot find enough sibling pods, current pods number: 1, minMember of group: 2", Cause.GANG),
    ("podGroup g failed recently", Cause.GANG),
    ("pre-filter pod p cannot proceed due to gated pods in the same PodGroup", Cause.GANG),
    ("PodGroup g gets rejected due to Pod p is unschedulable even after PostFilter", Cause.GANG),
    ("resource gap: nvidia.com/gpu 4", Cause.GANG),
    ('pod "p" rejected while waiting on permit: rejected due to timeout after waiting 10s at plugin', Cause.GANG),
    ("rejected due to timeout after waiting 10s at plugin Coscheduling", Cause.GANG),
    ("Pod ns/p is rejected in PreFilter because ElasticQuota q is more than Max", Cause.QUOTA),
    ("Pod ns/p is rejected in PreFilter because total ElasticQuota used is more than min", Cause.QUOTA),
    # Volcano
    (
        (
            "3/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable; Pending: "
            "1 Unschedulable, 2 Undetermined, 3 Schedulable. Origin reason is t-6: 0/3 nodes are unavailable: "
            "3 Insufficient nvidia.com/gpu."
        ),
        Cause.GANG,
    ),
    ("pod group is not ready, 1 Pending, 4 minAvailable", Cause.GANG),
    ("Pod ns1/task-3 can possibly be assigned to node1", Cause.GANG),
    ("queue resource quota insufficient: insufficient nvidia.com/gpu", Cause.QUOTA),
    (
        (
            "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable. Origin reason is t-0: "
            "0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu."
        ),
        Cause.GPU,
    ),
    # KAI
    ("no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs.", Cause.GPU),
    ("No nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory.", Cause.GPU),
    (
        "no nodes with enough resources were found: 2 node(s) didn't have enough resources: CPU cores.",
        Cause.CPU_OR_MEMORY,
    ),
    (
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: rdma/hca.",
        Cause.OTHER_RESOURCE,
    ),
    ("Node n didn't have enough resources: GPUs, requested: 1, used: 8, capacity: 8", Cause.GPU),
    (
        (
            "no nodes with enough resources were found: 1 node is not a gpu node or the gpu memory count on the node "
            "was not synced yet."
        ),
        Cause.GPU_UNAVAILABLE,
    ),
    ("node-group(s) didn't have enough resources: GPUs", Cause.GANG),
    ("node-group(s) didn't have enough resources within the topology", Cause.GANG),
    ("zone1 didn't have enough resources within the topology", Cause.TOPOLOGY),
    ("Non-preemptible workload is over quota. Workload requested 2 GPUs", Cause.QUOTA),
    ("Workload is over quota in queue q", Cause.QUOTA),
    ("queue team-a quota has reached the allowable limit of GPUs", Cause.QUOTA),
]
"""Whole messages with one cause."""


@pytest.mark.parametrize(("text", "cause"), OF_NODES)
@pytest.mark.parametrize("after", ["", f" {MIXED}", f" no new claims to deallocate, {NOT_HELPFUL}"])
def test_a_text_about_nodes_names_its_cause_wherever_it_stands(text, cause, after):
    assert parse(f"0/5 nodes are available: 5 {text}.{after}", GPUS).causes == {cause}
    beside = parse(f"0/9 nodes are available: 1 Insufficient cpu, 12 {text}, 2 Too many pods.{after}", GPUS).causes
    assert beside == {Cause.CPU_OR_MEMORY, cause, Cause.OTHER_RESOURCE}


@pytest.mark.parametrize(("message", "cause"), OF_PODS)
def test_a_message_about_the_pod_names_its_cause(message, cause):
    assert parse(message, GPUS).causes == {cause}
    assert parse(message, GPUS).unknown == ()


def test_every_wording_is_in_a_message_of_these_tests():
    texts = [text for text, _ in (*OF_NODES, *OF_PODS)]
    assert [w for w in (*STARTS, *ANYWHERE) if not any(w.text in text for text in texts)] == []


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_that_ruled_out_nodes_names_the_cause_of_its_kind(plugin):
    message = f"0/5 nodes are available: 2 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [{plugin}]."
    assert parse(message, GPUS).causes == {Cause.CPU_OR_MEMORY, PLUGINS[plugin]}


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
        # preemption that was tried repeats the texts of nodes, which are not causes of this pod
        (
            (
                "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}. preemption: 0/2 nodes are available: "
                "2 Insufficient nvidia.com/gpu."
            ),
            {Cause.TAINT},
        ),
        ("all nodes are unavailable: 3 node(s) pod number exceeded.", {Cause.OTHER_RESOURCE}),
        (
            (
                "no nodes with enough resources were found: 5 node(s) didn't match Pod's node affinity/selector, "
                "5 node(s) didn't have enough resources: GPUs."
            ),
            {Cause.SELECTOR, Cause.GPU},
        ),
        ("", set()),
        (" ", set()),
    ],
)
def test_a_message_names_these_causes(message, expected):
    assert parse(message, GPUS).causes == expected


@pytest.mark.parametrize(
    ("message", "unknown"),
    [
        ("running PreBind plugin failed", ("running PreBind plugin failed",)),
        ("0/9 nodes are available: 1 Insufficient cpu, 3 xyzzy, 5 plugh.", ("xyzzy", "plugh")),
    ],
)
def test_a_text_that_no_table_has_is_unknown(message, unknown):
    assert parse(message, GPUS).unknown == unknown
    assert Cause.UNKNOWN in parse(message, GPUS).causes


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        (NONE_FOUND, True),
        (f"no new claims to deallocate, {NOT_HELPFUL}", True),
        ("preemption: not eligible due to preemptionPolicy=Never.", True),
        ("preemption: not eligible due to a terminating pod on the nominated node.", False),
        ("preemption: found a potential placement for pod on node n2, preempting 1 victims", False),
        ("", False),
    ],
)
def test_a_message_tells_whether_preemption_was_tried_in_vain(part, failed):
    message = f"0/5 nodes are available: 5 Insufficient nvidia.com/gpu. {part}"
    assert parse(message, GPUS).preemption_failed is failed


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text):
    parse(text, GPUS)
    parse("0/5 nodes are available: " + text, GPUS)


@given(
    st.lists(
        st.sampled_from(
            [
                ("Insufficient nvidia.com/gpu", Cause.GPU),
                ("Insufficient cpu", Cause.CPU_OR_MEMORY),
                ("node(s) had taint {k: v}, that the pod didn't tolerate", Cause.TAINT),
                ("node(s) had untolerated taint {k: v}", Cause.TAINT),
                ("node(s) were unschedulable", Cause.NODE_UNAVAILABLE),
                ("node(s) had no available volume zone", Cause.VOLUME),
                ("node(s) didn't match Pod's node affinity/selector", Cause.SELECTOR),
            ]
        ),
        min_size=1,
        unique=True,
    )
)
def test_every_cause_of_a_histogram_is_found(entries):
    histogram = ", ".join(f"{count} {text}" for count, (text, _) in enumerate(entries, 1))
    found = parse(f"0/9 nodes are available: {histogram}. {NONE_FOUND}", GPUS)
    assert found.causes == {cause for _, cause in entries}
