"""Why a pod is pending that is nominated or bound to a node, or that an autoscaler knows."""

import pytest

from exporter.cluster.kubernetes.converting.events import Event
from exporter.cluster.scheduling.reasons.pending_pods import ClusterObjects, pending_pods
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, node, pod
from tests.exporter.cluster.scheduling.pending_pod_objects import A100, FULL, GPU, POD, reason_of, unschedulable


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
