"""Which lines an observation adds: what begins and ends an allocation, and which time counts."""

from exporter.node.audit.ledger import CHECKPOINT_ALLOCATIONS, CHECKPOINT_SECONDS
from exporter.node.audit.lines import (
    AllocationEnded,
    AllocationStarted,
    Checkpoint,
    DeviceId,
    MeasuredValue,
    decode,
    moment,
)
from exporter.node.devices.entities.device import Device
from exporter.node.pods.pod import NodePod
from tests.exporter.node.audit.days import BEGIN, GPUS, INTERVAL, decoded, given, of_event
from tests.exporter.node.audit.ledger_log import Log


def test_an_allocation_begins_with_the_first_answer_that_has_it_and_ends_with_the_first_that_has_not():
    log = Log()
    log.note()
    (started,) = log.note(given("a"))
    assert isinstance(started, AllocationStarted)
    assert (started.time, started.not_before) == (moment(BEGIN + 60), moment(BEGIN + 30))
    assert (started.namespace, started.pod, started.container, started.resource) == (
        "team", "a", "main", "nvidia_com_gpu",
    )  # fmt: skip
    assert (started.uuid, started.model, started.sharing) == ("GPU-0", "NVIDIA-H100-80GB-HBM3", "exclusive")
    assert started.allocation == started.seq
    assert log.note(given("a")) == []
    (ended,) = log.note()
    assert isinstance(ended, AllocationEnded)
    assert (ended.allocation, ended.started, ended.last_seen) == (started.seq, started.time, moment(BEGIN + 90))
    assert (ended.duration_seconds, ended.observed_seconds, ended.gpu_seconds) == (60, 60, 60)


def test_mean_and_maximum_cover_the_time_between_answers_that_had_it_and_of_which_values_were_read():
    log = Log()
    log.note(given("a"), busy=1.0)  # the mean of a time before it
    for busy, memory in ((0.2, 10.0), (0.4, None), (None, 40.0)):
        log.note(given("a"), busy=busy, memory=memory)
    (ended,) = log.note(busy=1.0)
    assert ended.utilization == MeasuredValue(0.3, 0.4, 60)
    assert ended.memory_bytes == MeasuredValue(25, 40, 60)
    assert ended.observed_seconds == 120


def test_values_that_were_never_read_are_absent():
    log = Log()
    for _ in range(3):
        log.note(given("a"), busy=None, memory=None)
    (ended,) = log.note()
    assert (ended.utilization, ended.memory_bytes) == (None, None)
    assert b'"utilization":null' not in log.content


def test_an_allocation_of_a_gpu_that_is_gone_ends_when_every_id_has_a_meaning():
    log = Log()
    log.note(given("a"))
    (gap,) = log.note(given("a"), inventory=GPUS[1:])
    assert gap.device == DeviceId("GPU-0")
    ended, gap = log.note(inventory=GPUS[1:])
    assert (ended.pod, gap.device, gap.reason) == ("a", DeviceId("GPU-0"), "unmatched")


def test_a_mig_device_is_named_with_its_ids_and_its_profile():
    mig = Device("GPU-0", 0, "", 0, "NVIDIA A100", 3, profile="1g.10gb", mig_uuids=("MIG-1",))
    log = Log()
    (started,) = log.note(given("a", "MIG-1", resource="nvidia.com/mig-1g.10gb"), inventory=(GPUS[0], mig))
    assert started.device == DeviceId("GPU-0", 3, -1, "1g.10gb")
    assert b"compute_instance_id" not in log.content


def test_a_shared_gpu_is_divided_between_its_containers_by_their_replicas():
    def replicas(pod, *numbers):
        return [given(pod, f"GPU-0::{number}") for number in numbers]

    log = Log()
    log.note(*replicas("a", 0), *replicas("b", 1, 2))
    log.note(*replicas("a", 0), *replicas("b", 1, 2))
    first, second = log.note(*replicas("c", 3))[:2]
    assert (first.sharing, first.replicas, first.gpu_seconds) == ("time-slicing", 1, 20)
    assert (second.replicas, second.gpu_seconds) == (2, 40)


def test_a_pod_of_the_same_name_with_another_uid_is_another_pod():
    log = Log()
    log.note(given("web-0", uid="u1"))
    ended, started = log.note(given("web-0", uid="u2"))
    assert (ended.pod_uid, started.pod_uid) == ("u1", "u2")


def test_what_becomes_known_of_a_pod_later_is_in_the_lines_that_follow():
    pod = NodePod(
        "team", "a", "u1", workload="train", workload_type="Job", annotations={"who": "ann" * 99, "other": "x"}
    )
    log = Log(annotations=("who", "absent"))
    (started,) = log.note(given("a"))
    assert (started.pod_uid, started.workload, started.requested_by) == ("", "", {})
    assert log.note(given("a"), pods={("team", "a"): pod}) == []
    (ended,) = log.note()
    assert (ended.pod_uid, ended.workload, ended.workload_type) == ("u1", "train", "Job")
    assert ended.requested_by == {"who": ("ann" * 99)[:256]}


def test_an_allocation_that_only_pod_metadata_knows_of_does_not_end_with_what_is_known_of_pods():
    log = Log()
    (started,) = log.note(given("a"), listed=frozenset())
    assert started.from_metadata
    (gap,) = log.note(listed=frozenset(), pods_known=False)
    assert (gap.device, gap.reason) == (DeviceId("GPU-0"), "metadata")
    log.restart()
    (after,) = log.note(listed=frozenset(), pods_known=False)
    assert after.reason == "not_running"
    ended, gap = log.note(listed=frozenset())
    assert (ended.pod, ended.last_seen, ended.observed_seconds) == ("a", moment(BEGIN + 30), 0)
    assert (gap.device, gap.until) == (DeviceId("GPU-0"), ended.time)


def test_an_allocation_that_the_kubelet_lists_ends_with_its_answer_whatever_is_known_of_pods():
    log = Log()
    listed = frozenset({("team", "a", "main")})
    (started,) = log.note(given("a"), listed=listed, pods_known=False)
    assert not started.from_metadata
    (ended,) = log.note(listed=frozenset(), pods_known=False)
    assert isinstance(ended, AllocationEnded)


def test_checkpoints_have_the_sums_of_every_allocation_in_turn():
    log = Log()
    allocations = [given(f"pod-{n:03}", f"GPU-0::{n}") for n in range(CHECKPOINT_ALLOCATIONS + 6)]
    for _ in range(int(2 * CHECKPOINT_SECONDS / INTERVAL) + 1):
        log.note(*allocations)
    checkpoints = of_event(decoded(log.content), Checkpoint)
    assert [len(each.allocations) for each in checkpoints] == [64, 64, 64]
    named = {usage.allocation for each in checkpoints[:2] for usage in each.allocations}
    assert len(named) == len(allocations)
    assert all(len(line) < 16 << 10 for line in log.content.splitlines())


def test_every_line_has_the_number_and_the_hash_of_the_one_before():
    log = Log()
    for pod in "abc":
        log.note(given(pod))
    lines = log.content.splitlines()
    assert [decode(line).seq for line in lines] == list(range(1, len(lines) + 1))
    assert len({decode(line).prev for line in lines}) == len(lines)
    assert decode(lines[0]).prev == ""
