"""The pending reason of a pod, from its condition and from the nodes."""

from dataclasses import replace

import pytest

from exporter.cluster.kubernetes.events import Event
from exporter.cluster.scheduling.cluster_state import ClusterState
from exporter.cluster.scheduling.device_claims import DeviceObjects
from exporter.cluster.scheduling.free_capacity import node_groups, requested
from exporter.cluster.scheduling.node_selection import demanded_model
from exporter.cluster.scheduling.pending_pods import ClusterObjects, pending_pods
from exporter.cluster.scheduling.pending_reason import PendingReason
from exporter.cluster.scheduling.verdict import pending_reason
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, node, pod, view

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
A100 = objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 8)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
POD = objects.pod("p", requests={GPU: 4}, created=NOW - 1000)
SELECTOR_AND_GPU = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
)
TAINT_AND_GPU = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu."
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
CPU_AND_GPU = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


def reason_of(given, nodes=None, others=(), **known):
    """The pending reason, with these nodes and the other pods that run on them."""
    one = pod(given)
    state = replace(ClusterState(GPUS, now=NOW), **known)
    if nodes is None:
        return pending_reason(one, state)
    records = [node(each) for each in nodes]
    groups = node_groups(records, requested([pod(each) for each in others]), [one], DeviceObjects())
    names = frozenset(each.name for each in records)
    return pending_reason(one, replace(state, groups=groups, single_nodes=groups, node_names=names))


def unschedulable(message, given=POD):
    return objects.unschedulable(given, message, NOW - 900)


def selecting(given, **labels):
    return {**given, "spec": {**given["spec"], "nodeSelector": labels}}


def requiring(given, *terms):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return {**given, "spec": {**given["spec"], "affinity": affinity}}


def tolerating(given, *tolerations):
    return {**given, "spec": {**given["spec"], "tolerations": list(tolerations)}}


def using(name, on, count):
    return objects.running(objects.pod(name, requests={GPU: count}), on)


def test_the_label_values_of_the_reasons_are_these():
    assert {str(reason) for reason in PendingReason} == {
        "gated",
        "queued",
        "gang",
        "not_tried",
        "insufficient_gpu",
        "insufficient_cpu_or_memory",
        "insufficient_other",
        "node_selector_or_affinity",
        "taint",
        "topology",
        "volume",
        "node_unavailable",
        "gpu_unavailable",
        "fragmentation",
        "unsatisfiable_size",
        "unknown_resource",
        "claim",
        "quota",
        "preempting",
        "scaling_up",
        "image_pull",
        "start_failed",
        "starting",
        "admission_failed",
        "scheduler_error",
        "other",
    }


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        (["example.com/wait"], PendingReason.GATED),
        (["kueue.x-k8s.io/admission"], PendingReason.QUEUED),
        (["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"], PendingReason.QUEUED),
        (["kueue.x-k8s.io/admission", "example.com/wait"], PendingReason.GATED),
    ],
)
def test_a_pod_is_queued_when_all_its_scheduling_gates_are_those_of_a_queue(gates, reason):
    assert reason_of(objects.gated(POD, *gates)) == reason


def test_a_pod_without_a_scheduled_condition_is_not_tried():
    assert reason_of(POD) == PendingReason.NOT_TRIED


def test_a_pod_whose_scheduling_gate_was_removed_is_not_tried_while_its_condition_is_that_of_the_gate():
    opened = objects.gated(POD, "x")
    opened["spec"]["schedulingGates"] = []
    assert reason_of(opened) == PendingReason.NOT_TRIED


def test_a_pod_with_a_node_is_starting():
    assert reason_of(objects.bound(POD, "n1")) == PendingReason.STARTING


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('Post "http://127.0.0.1/filter": connection refused', PendingReason.SCHEDULER_ERROR),
        ('running PreBind plugin "VolumeBinding": binding volumes: timed out', PendingReason.VOLUME),
        ('running "DynamicResources" filter plugin: claim n/c: CEL runtime error', PendingReason.CLAIM),
        ("node n: timed out trying to allocate devices", PendingReason.CLAIM),
    ],
)
def test_an_error_of_the_scheduler_is_about_the_volume_or_claim_that_it_names(text, reason):
    given = unschedulable(text)
    given["status"]["conditions"][0]["reason"] = "SchedulerError"
    assert reason_of(given) == reason


@pytest.mark.parametrize("condition", ["NotReadyForScheduling", "Undetermined", ""])
def test_the_message_counts_whatever_the_reason_of_the_condition(condition):
    given = unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    given["status"]["conditions"][0]["reason"] = condition
    assert reason_of(given) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", PendingReason.INSUFFICIENT_GPU),
        ("0/1 nodes are available: 1 Insufficient memory.", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("0/1 nodes are available: 1 Too many pods.", PendingReason.INSUFFICIENT_OTHER),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s).", PendingReason.TAINT),
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        ("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.", PendingReason.TOPOLOGY),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", PendingReason.NODE_UNAVAILABLE),
        ("no nodes available to schedule pods", PendingReason.NODE_UNAVAILABLE),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 node(s) had no available volume zone.",
            PendingReason.VOLUME,
        ),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 Insufficient nvidia.com/gpu.",
            PendingReason.INSUFFICIENT_GPU,
        ),
        ("0/1 nodes are available: 1 cannot allocate all claims.", PendingReason.INSUFFICIENT_GPU),
        ("0/1 nodes are available: 1 8/8 CardNotHealth.", PendingReason.GPU_UNAVAILABLE),
        ("all nodes are unavailable: 1 node(s) resource fit failed.", PendingReason.INSUFFICIENT_GPU),
        ("queue resource quota insufficient: insufficient nvidia.com/gpu", PendingReason.QUOTA),
        ("1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable", PendingReason.GANG),
        ("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", PendingReason.OTHER),
        ("0/1 nodes are available: 1 xyzzy.", PendingReason.OTHER),
        ("", PendingReason.OTHER),
    ],
)
def test_without_nodes_the_message_decides(message, expected):
    assert reason_of(unschedulable(message)) == expected


def test_a_pod_that_selects_a_model_lacks_gpus_when_the_nodes_of_that_model_are_full():
    nodes = [objects.node("h", {GPU: 8}, H100), objects.node("a", {GPU: 8}, A100)]
    selects_h100 = selecting(
        unschedulable(SELECTOR_AND_GPU), **{"nvidia.com/gpu.product": H100["nvidia.com/gpu.product"]}
    )
    assert reason_of(selects_h100, nodes, [using("q", "h", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_a_selector_that_no_gpu_node_matches_is_the_reason_although_other_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100)]
    assert (
        reason_of(selecting(unschedulable(SELECTOR_AND_GPU), zone="b"), nodes)
        == PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


def test_a_taint_on_the_gpu_nodes_is_the_reason_although_other_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == PendingReason.TAINT


def test_a_tolerated_taint_is_not_the_reason():
    nodes = [objects.node("a", {GPU: 8}, A100, [TAINT]), objects.node("b", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes, [using("q", "a", 6)]) == PendingReason.INSUFFICIENT_GPU


def test_free_gpus_without_cpu_are_a_lack_of_cpu():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    assert (
        reason_of(unschedulable(CPU_AND_GPU), nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_CPU_OR_MEMORY
    )


def test_free_gpus_that_are_scattered_are_fragmentation():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    used = [using("q", "a", 6), using("r", "b", 6)]
    assert reason_of(unschedulable(CPU_AND_GPU), nodes, used) == PendingReason.FRAGMENTATION
    assert reason_of(unschedulable(CPU_AND_GPU), nodes, [*used, using("s", "b", 1)]) == PendingReason.INSUFFICIENT_GPU


def test_scattered_gpus_count_only_on_nodes_that_are_open_to_the_pod():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.cordoned(objects.node("b", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert reason_of(unschedulable(message), nodes, [using("q", "a", 6)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpus", "nvidia.com/gpu-h100"])
def test_a_resource_that_no_node_offers_and_none_should_is_unknown(resource):
    message = f"0/2 nodes are available: 2 Insufficient {resource}."
    given = unschedulable(message, objects.pod("p", requests={resource: 1}))
    bare = objects.node("b", {}, A100)
    assert reason_of(given, [objects.node("a", {GPU: 8}, A100), bare]) == PendingReason.UNKNOWN_RESOURCE


def test_more_gpus_than_any_node_has_are_an_unsatisfiable_size():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {}, A100)]
    assert reason_of(unschedulable(FULL, objects.pod("p", requests={GPU: 9})), nodes) == (
        PendingReason.UNSATISFIABLE_SIZE
    )


def test_size_counts_among_the_nodes_that_the_pod_may_use():
    nodes = [objects.node("a", {GPU: 2}, {**A100, "zone": "a"}), objects.node("b", {GPU: 8}, {**A100, "zone": "b"})]
    given = selecting(unschedulable(SELECTOR_AND_GPU), zone="a")
    assert reason_of(given, nodes) == PendingReason.UNSATISFIABLE_SIZE


def test_the_only_node_that_is_large_enough_being_tainted_is_a_taint():
    nodes = [objects.node("a", {GPU: 2}, A100), objects.node("b", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == PendingReason.TAINT


@pytest.mark.parametrize("capacity", [{}, {GPU: 8}])
def test_nodes_that_should_offer_gpus_and_do_not_are_gpus_that_are_unavailable(capacity):
    broken = objects.node("a", capacity, A100)
    broken["status"]["allocatable"].pop(GPU, None)
    assert reason_of(unschedulable(FULL), [broken]) == PendingReason.GPU_UNAVAILABLE


def test_a_selected_node_without_its_gpus_is_not_a_wrong_selector():
    nodes = [objects.node("a", {}, {**A100, "zone": "a"}), objects.node("b", {GPU: 8}, {**A100, "zone": "b"})]
    given = selecting(unschedulable(SELECTOR_AND_GPU), zone="a")
    assert reason_of(given, nodes) == PendingReason.GPU_UNAVAILABLE


def test_unhealthy_gpus_are_unavailable_when_without_them_no_node_has_enough():
    sick = objects.node("a", {GPU: 8}, A100)
    sick["status"]["allocatable"][GPU] = "3"
    assert reason_of(unschedulable(FULL), [sick]) == PendingReason.GPU_UNAVAILABLE
    healthy = objects.node("b", {GPU: 8}, A100)
    assert reason_of(unschedulable(FULL), [sick, healthy], [using("q", "b", 8)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize(
    ("profile", "reason"),
    [("1g.10gb", PendingReason.GPU_UNAVAILABLE), ("4g.40gb", PendingReason.UNKNOWN_RESOURCE)],
)
def test_a_mig_device_that_a_node_is_being_given_is_unavailable(profile, reason):
    labels = {**A100, "nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "pending"}
    resource = f"nvidia.com/mig-{profile}"
    given = unschedulable(
        f"0/1 nodes are available: 1 Insufficient {resource}.", objects.pod("p", requests={resource: 1})
    )
    assert reason_of(given, [objects.node("a", {GPU: 8}, labels)]) == reason


def test_a_cause_that_the_message_does_not_name_is_never_the_reason():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(CPU_AND_GPU), nodes) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize("state", [objects.cordoned, objects.not_ready])
def test_gpu_nodes_that_are_not_usable_are_no_lack_of_gpus(state):
    nodes = [state(objects.node("a", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert reason_of(unschedulable(message), nodes) == PendingReason.NODE_UNAVAILABLE


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("node.kubernetes.io/not-ready", PendingReason.NODE_UNAVAILABLE),
        ("node.kubernetes.io/disk-pressure", PendingReason.NODE_UNAVAILABLE),
        ("node.cloudprovider.kubernetes.io/uninitialized", PendingReason.NODE_UNAVAILABLE),
        ("ToBeDeletedByClusterAutoscaler", PendingReason.NODE_UNAVAILABLE),
        ("karpenter.sh/disrupted", PendingReason.NODE_UNAVAILABLE),
        ("node.cilium.io/agent-not-ready", PendingReason.NODE_UNAVAILABLE),
        ("dedicated", PendingReason.TAINT),
        ("nvidia.com/gpu.team", PendingReason.TAINT),
        ("node-role.kubernetes.io/control-plane", PendingReason.TAINT),
    ],
)
def test_a_taint_for_the_state_of_the_node_is_no_taint_of_somebody(key, reason):
    nodes = [objects.node("a", {GPU: 8}, A100, [{"key": key, "effect": "NoSchedule"}])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == reason
    tolerant = tolerating(unschedulable(TAINT_AND_GPU), {"key": key, "operator": "Exists"})
    assert reason_of(tolerant, nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_a_pod_that_tolerates_a_cordon_can_use_the_node():
    nodes = [objects.cordoned(objects.node("a", {GPU: 8}, A100))]
    tolerant = tolerating(unschedulable(FULL), {"operator": "Exists"})
    assert reason_of(tolerant, nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Insufficient memory", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("Too many pods", PendingReason.INSUFFICIENT_OTHER),
        ("Insufficient rdma/hca", PendingReason.INSUFFICIENT_OTHER),
        ("node(s) didn't match pod affinity rules", PendingReason.NODE_SELECTOR_OR_AFFINITY),
        ("node(s) didn't match pod topology spread constraints", PendingReason.TOPOLOGY),
        ("node(s) exceed max volume count", PendingReason.VOLUME),
        ("node(s) didn't have free ports for the requested pod ports", PendingReason.OTHER),
    ],
)
def test_beside_free_gpus_the_message_decides(text, reason):
    nodes = [objects.node("a", {GPU: 8}, A100)]
    message = f"0/3 nodes are available: 1 {text}, 2 Insufficient nvidia.com/gpu."
    assert reason_of(unschedulable(message), nodes) == reason


def test_gpus_that_were_freed_since_the_message_are_still_a_lack_of_gpus():
    assert reason_of(unschedulable(FULL), [objects.node("a", {GPU: 8}, A100)]) == PendingReason.INSUFFICIENT_GPU


def nominated(given, on="a"):
    return {**given, "status": {**given["status"], "nominatedNodeName": on}}


def with_volume(given):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return {**given, "spec": {**given["spec"], "volumes": volumes}}


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("", PendingReason.PREEMPTING),
        (" preemption: found a potential placement for pod on node a, preempting 1 victims", PendingReason.PREEMPTING),
        (" preemption: not eligible due to a terminating pod on the nominated node.", PendingReason.PREEMPTING),
        (
            " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            PendingReason.INSUFFICIENT_GPU,
        ),
    ],
)
def test_a_pod_with_a_nominated_node_is_preempting_unless_preemption_failed(part, reason):
    assert reason_of(nominated(unschedulable(FULL + part))) == reason


def test_a_pod_that_is_being_deleted_on_the_nominated_node_is_a_victim():
    failed = " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    given = nominated(unschedulable(FULL + failed))
    assert reason_of(given, leaving=frozenset({"a"})) == PendingReason.PREEMPTING


def test_a_nominated_pod_without_a_verdict_waits_for_its_volume():
    assert reason_of(nominated(with_volume(POD))) == PendingReason.VOLUME
    assert reason_of(with_volume(POD)) == PendingReason.NOT_TRIED
    assert reason_of(nominated(POD)) == PendingReason.NOT_TRIED


def starting(reason, *, init=False):
    given = objects.bound(POD, "n1")
    statuses = [{"name": "main", "state": {"waiting": {"reason": reason}}}]
    given["status"]["initContainerStatuses" if init else "containerStatuses"] = statuses
    return given


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        ("ContainerCreating", PendingReason.STARTING),
        ("PodInitializing", PendingReason.STARTING),
        ("ErrImagePull", PendingReason.IMAGE_PULL),
        ("ImagePullBackOff", PendingReason.IMAGE_PULL),
        ("InvalidImageName", PendingReason.IMAGE_PULL),
        ("ImageInspectError", PendingReason.IMAGE_PULL),
        ("ErrImageNeverPull", PendingReason.IMAGE_PULL),
        ("RegistryUnavailable", PendingReason.IMAGE_PULL),
        ("SignatureValidationFailed", PendingReason.IMAGE_PULL),
        ("CreateContainerConfigError", PendingReason.START_FAILED),
        ("CreateContainerError", PendingReason.START_FAILED),
        ("RunContainerError", PendingReason.START_FAILED),
        ("CrashLoopBackOff", PendingReason.START_FAILED),
        ("PostStartHookError", PendingReason.START_FAILED),
    ],
)
def test_what_the_kubelet_says_of_a_container_is_the_reason_of_a_bound_pod(waiting, reason, init):
    assert reason_of(starting(waiting, init=init)) == reason


def test_a_container_that_ended_without_having_started_has_failed_to_start():
    given = objects.bound(POD, "n1")
    given["status"]["containerStatuses"] = [{"state": {"terminated": {"reason": "StartError", "exitCode": 128}}}]
    assert reason_of(given) == PendingReason.START_FAILED


def test_a_pod_whose_node_is_gone_cannot_start():
    assert reason_of(objects.bound(POD, "gone"), [objects.node("a", {GPU: 8}, A100)]) == PendingReason.NODE_UNAVAILABLE
    assert reason_of(objects.bound(POD, "gone")) == PendingReason.STARTING


def event(reason, at=NOW - 60):
    return Event("default", "Pod", "p", pod(POD).uid, reason, "", at)


def events(*found):
    return {"events": {pod(POD).uid: found}}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FailedMount", PendingReason.VOLUME),
        ("FailedAttachVolume", PendingReason.VOLUME),
        ("FailedCreatePodSandBox", PendingReason.START_FAILED),
        ("FailedPrepareDynamicResources", PendingReason.CLAIM),
    ],
)
def test_events_say_what_keeps_a_bound_pod_from_starting(said, reason):
    assert reason_of(objects.bound(POD, "n1"), **events(event(said))) == reason
    assert reason_of(objects.bound(POD, "n1"), **events(event(said, NOW - 700))) == PendingReason.STARTING


@pytest.mark.parametrize(
    ("heard", "reason"),
    [
        ([event("TriggeredScaleUp")], PendingReason.SCALING_UP),
        ([event("Nominated")], PendingReason.SCALING_UP),
        ([event("NotTriggerScaleUp")], PendingReason.INSUFFICIENT_GPU),
        ([event("TriggeredScaleUp", NOW - 90), event("NotTriggerScaleUp")], PendingReason.INSUFFICIENT_GPU),
        ([event("NotTriggerScaleUp", NOW - 90), event("TriggeredScaleUp")], PendingReason.SCALING_UP),
        ([event("TriggeredScaleUp", NOW - 3600)], PendingReason.INSUFFICIENT_GPU),
    ],
)
def test_the_last_word_of_an_autoscaler_counts_while_it_is_fresh(heard, reason):
    assert reason_of(unschedulable(FULL), **events(*heard)) == reason


def test_a_node_that_is_being_made_does_not_help_a_pod_that_lacks_its_volume():
    given = unschedulable("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    assert reason_of(given, **events(event("TriggeredScaleUp"))) == PendingReason.VOLUME


def test_a_size_that_a_lost_node_had_is_not_unsatisfiable_unless_the_autoscaler_refuses():
    given = unschedulable(FULL, objects.pod("p", requests={GPU: 8}))
    small, large = node(objects.node("s", {GPU: 4}, A100)), node(objects.node("l", {GPU: 8}, A100))

    def reason(lost, *heard):
        found = {pod(given).uid: heard}
        return pending_pods(ClusterObjects(NOW, GPUS, [pod(given)], [small], events=found, lost_nodes=lost))[0].reason

    assert reason([]) == PendingReason.UNSATISFIABLE_SIZE
    assert reason([large]) == PendingReason.INSUFFICIENT_GPU
    assert reason([large], event("NotTriggerScaleUp")) == PendingReason.UNSATISFIABLE_SIZE


@pytest.mark.parametrize(
    ("resource", "count", "reason"),
    [
        (GPU, 8, PendingReason.INSUFFICIENT_GPU),
        (GPU, 17, PendingReason.UNSATISFIABLE_SIZE),
        ("nvidia.com/gpus", 1, PendingReason.UNKNOWN_RESOURCE),
        ("nvidia.com/mig-1g.10gb", 1, PendingReason.UNKNOWN_RESOURCE),
    ],
)
def test_where_an_autoscaler_can_make_gpu_nodes_a_usual_size_is_not_unsatisfiable(resource, count, reason):
    message = f"0/1 nodes are available: 1 Insufficient {resource}."
    given = unschedulable(message, objects.pod("p", requests={resource: count}))
    small = [objects.node("s", {GPU: 4}, A100)]
    assert reason_of(given, small, gpu_pools=True) == reason


def in_group(given, name="g"):
    return {**given, "spec": {**given["spec"], "schedulingGroup": {"podGroupName": name}}}


def volcano(given):
    meta = {**given["metadata"], "annotations": {"scheduling.k8s.io/group-name": "g"}}
    return {**given, "metadata": meta}


def test_every_member_of_a_gang_has_the_reason_gang():
    gang = "pod group is unschedulable, minCount (3) is not satisfiable"
    pods = [
        in_group(unschedulable(gang, objects.pod("a"))),
        in_group(unschedulable(FULL, objects.pod("b"))),
        in_group(objects.pod("c")),
        in_group(unschedulable(FULL, objects.pod("d")), "other"),
        unschedulable(FULL, objects.pod("e")),
    ]
    found = {each.pod.name: each.reason for each in view(pods).pending}
    assert found == {
        "a": PendingReason.GANG,
        "b": PendingReason.GANG,
        "c": PendingReason.GANG,
        "d": PendingReason.INSUFFICIENT_GPU,
        "e": PendingReason.INSUFFICIENT_GPU,
    }


def test_the_members_of_a_volcano_group_share_the_reason_only_when_one_waits_for_the_others():
    plain = [volcano(unschedulable(FULL, objects.pod("a"))), volcano(objects.pod("b"))]
    assert {each.reason for each in view(plain).pending} == {PendingReason.INSUFFICIENT_GPU, PendingReason.NOT_TRIED}
    gang = "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable"
    waiting = [*plain, volcano(unschedulable(gang, objects.pod("c")))]
    assert {each.reason for each in view(waiting).pending} == {PendingReason.GANG}


def test_a_pod_without_a_verdict_whose_group_is_one_of_kubernetes_waits_for_its_gang():
    reference = {**POD, "spec": {**POD["spec"], "workloadRef": {"name": "w", "podGroup": "g"}}}
    assert view([in_group(POD)]).pending[0].reason == PendingReason.GANG
    assert view([reference]).pending[0].reason == PendingReason.GANG


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "In", "values": ["c"]}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "nowhere", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "nowhere", "operator": "Exists"}, False),
        ({"key": "nowhere", "operator": "DoesNotExist"}, True),
        ({"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["8"]}, False),
        ({"key": "nvidia.com/gpu.count", "operator": "Lt", "values": ["9"]}, True),
        ({"key": "zone", "operator": "Gt", "values": ["1"]}, False),
        ({"key": "zone", "operator": "Near", "values": ["a"]}, False),
    ],
)
def test_node_affinity_is_evaluated_as_the_scheduler_does(expression, matches):
    nodes = [objects.node("n", {GPU: 8}, {**A100, "zone": "a"})]
    given = requiring(unschedulable(SELECTOR_AND_GPU), {"matchExpressions": [expression]})
    assert reason_of(given, nodes, [using("q", "n", 8)]) == (
        PendingReason.INSUFFICIENT_GPU if matches else PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


def test_terms_are_alternatives_and_an_empty_term_matches_nothing():
    nodes = [objects.node("n", {GPU: 8}, A100)]
    used = [using("q", "n", 8)]
    other = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    this = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert (
        reason_of(requiring(unschedulable(SELECTOR_AND_GPU), other, this), nodes, used)
        == PendingReason.INSUFFICIENT_GPU
    )
    assert (
        reason_of(requiring(unschedulable(SELECTOR_AND_GPU), {}), nodes, used)
        == PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "a"}, True),
        ({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Equal", "value": "b"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "a"}, False),
    ],
)
def test_tolerations_are_evaluated_as_the_scheduler_does(toleration, tolerated):
    nodes = [objects.node("n", {GPU: 8}, A100, [TEAM])]
    expected = PendingReason.INSUFFICIENT_GPU if tolerated else PendingReason.TAINT
    assert reason_of(tolerating(unschedulable(TAINT_AND_GPU), toleration), nodes, [using("q", "n", 8)]) == expected


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [("Gt", "900", True), ("Gt", "950", False), ("Lt", "1000", True), ("Lt", "950", False), ("Gt", "many", False)],
)
def test_a_toleration_can_compare_the_value_of_the_taint(operator, value, tolerated):
    nodes = [objects.node("n", {GPU: 8}, A100, [{"key": "sla", "value": "950", "effect": "NoSchedule"}])]
    given = tolerating(unschedulable(TAINT_AND_GPU), {"key": "sla", "operator": operator, "value": value})
    expected = PendingReason.INSUFFICIENT_GPU if tolerated else PendingReason.TAINT
    assert reason_of(given, nodes, [using("q", "n", 8)]) == expected


def test_a_taint_of_effect_prefer_no_schedule_keeps_no_pod_away():
    nodes = [objects.node("n", {GPU: 8}, A100, [{**TEAM, "effect": "PreferNoSchedule"}])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes, [using("q", "n", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_pods_that_differ_only_in_their_constraints_can_have_different_reasons():
    nodes = [objects.node("h", {GPU: 8}, H100)]
    pods = [
        using("used", "h", 8),
        unschedulable(SELECTOR_AND_GPU, objects.pod("any", requests={GPU: 4})),
        selecting(unschedulable(SELECTOR_AND_GPU, objects.pod("selective", requests={GPU: 4})), zone="b"),
    ]
    found = {each.pod.name: each.reason for each in view(pods, nodes).pending}
    assert found == {"any": PendingReason.INSUFFICIENT_GPU, "selective": PendingReason.NODE_SELECTOR_OR_AFFINITY}


def test_for_many_pods_that_select_nodes_by_name_on_a_large_cluster_the_message_alone_decides():
    def named(name):
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        given = unschedulable(TAINT_AND_GPU, objects.pod(f"ds-{name}", requests={GPU: 4}))
        return requiring(given, {"matchFields": [field]})

    nodes = [objects.node(f"n{number}", {GPU: 8}, A100, [TEAM]) for number in range(500)]
    few = view([named("n1")], nodes).pending
    many = view([named(f"n{number}") for number in range(500)], nodes).pending
    assert {each.reason for each in few} == {PendingReason.TAINT}
    assert {each.reason for each in many} == {PendingReason.INSUFFICIENT_GPU}


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "zone"])
def test_pods_that_select_nodes_one_by_one_do_not_keep_others_from_being_compared(key):
    nodes = [objects.node(f"n{number}", {GPU: 8}, {**A100, key: f"n{number}"}, [TEAM]) for number in range(500)]
    single = [
        selecting(unschedulable(TAINT_AND_GPU, objects.pod(f"p{number}", requests={GPU: 4})), **{key: f"n{number}"})
        for number in range(500)
    ]
    other = unschedulable(TAINT_AND_GPU, objects.pod("other", requests={GPU: 4}))
    found = {each.pod.name: each.reason for each in view([*single, other], nodes).pending}
    expected = PendingReason.TAINT if key == "kubernetes.io/hostname" else PendingReason.INSUFFICIENT_GPU
    assert found["other"] == expected


def test_pods_that_run_or_are_being_deleted_are_not_pending():
    leaving = objects.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = objects.stamp(NOW)
    assert view([objects.running(POD, "n1"), leaving]).pending == ()


PRODUCT = "nvidia.com/gpu.product"


def product_in(*products, operator="In"):
    return {"matchExpressions": [{"key": PRODUCT, "operator": operator, "values": list(products)}]}


@pytest.mark.parametrize(
    ("given", "model"),
    [
        (POD, "any"),
        (selecting(POD, **{PRODUCT: "NVIDIA-H100-80GB-HBM3"}), "NVIDIA-H100-80GB-HBM3"),
        (selecting(POD, **{PRODUCT: "Tesla-T4-SHARED"}), "Tesla-T4"),
        (selecting(POD, zone="a"), "any"),
        (requiring(POD, product_in("H100")), "H100"),
        (requiring(POD, product_in("H100"), product_in("H100-SHARED")), "H100"),
        (requiring(POD, product_in("H100", "H200")), "any"),
        (requiring(POD, product_in("H100"), {}), "any"),
        (requiring(POD, product_in("H100", operator="NotIn")), "any"),
    ],
)
def test_the_model_that_a_pod_demands_is_the_only_one_that_selector_and_affinity_allow(given, model):
    assert demanded_model(pod(given).constraints) == model
