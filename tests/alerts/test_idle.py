"""Alerts on idle GPUs: pods of every workload class, some devices of a pod, some pods of a workload, shared devices."""

import pytest

from alerts import GROUPS
from alerts.recorded.thresholds import THRESHOLDS
from alerts.rules.rule import Alert
from alerts.rules.rulefile import annotations_of, labels_of
from tests.alerts.fleet import FLAVORS, Flavor, Gpu, Node, Pod
from tests.alerts.promtool import RuleFixture, dashboard_of, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

LONG = "1x500"
"""Four hours and more."""
OWN, STOCK = FLAVORS[0], FLAVORS[4]
HOLE = "1x299 stale _x13 1x300"
"""Seven minutes without samples, from minute 150."""
ALERTS = {rule.name: rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)}


def gpu(load: float | str, pods: tuple[str, ...] = ("p",), present: str = LONG) -> Gpu:
    """A device with this load all the time, or these values."""
    values = load if isinstance(load, str) else present.replace("1x", f"{load}x")
    return Gpu(values, pods=pods, present=present)


def situation(
    fixture: RuleFixture, name: str, pods: tuple[Pod, ...], *gpus: Gpu, flavor: Flavor = OWN
) -> tuple[Node, dict[str, Pod]]:
    """One node with these pods and devices, in a namespace of its own."""
    node = Node(fixture, flavor, name)
    node.up(LONG)
    for pod in pods:
        node.pod(pod)
    for number, each in enumerate(gpus):
        node.gpu(number, each)
    return node, {pod.name: pod for pod in pods}


def expect(fixture: RuleFixture, alert: str, placed: tuple[Node, dict[str, Pod]], firing: dict[float, str]) -> None:
    """Expect the alert for these pods (names separated by blanks) at each minute, and for no other of the namespace."""
    node, pods = placed
    for minute, names in firing.items():
        fixture.expect_firing(alert, node.namespace, minute, [node.workload(pods[name]) for name in names.split()])


def check(tmp_path, fixture: RuleFixture) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


def watched(workload_class: str = "training", **more: object) -> Pod:
    return Pod(workload_class=workload_class, watched=LONG, **more)  # type: ignore[arg-type]


def test_a_pod_of_every_class_is_idle_after_the_window_of_its_class(tmp_path):
    fixture = RuleFixture()
    window = {"alert": "GPUPodIdleSecondsOfServing"}
    fixture.add("global:gpugauge_threshold_override:value", window, f"{180 * 60}x500")
    two_hours, three_hours = {115: "", 135: "p", 230: "p"}, {135: "", 175: "", 195: "p"}
    for flavor in (OWN, STOCK):
        for workload_class, firing in (
            ("training", two_hours),
            ("interactive", two_hours),
            ("serving", three_hours),
            ("", three_hours),
        ):
            placed = situation(fixture, f"5-idle-{workload_class}", (watched(workload_class),), gpu(0), flavor=flavor)
            expect(fixture, "GPUPodIdle", placed, firing)
            noisy = situation(fixture, f"noise-{workload_class}", (watched(workload_class),), gpu(0.009), flavor=flavor)
            expect(fixture, "GPUPodIdle", noisy, firing)
            used = situation(fixture, f"used-{workload_class}", (watched(workload_class),), gpu(0.01), flavor=flavor)
            expect(fixture, "GPUPodIdle", used, dict.fromkeys(firing, ""))
    check(tmp_path, fixture)


def test_the_windows_are_two_hours_and_for_serving_a_day():
    found = {
        each.alert.removeprefix("GPUPodIdleSecondsOf"): each.value / 3600 for each in THRESHOLDS if "Of" in each.alert
    }
    assert {name: hours for name, hours in found.items() if hours >= 1} == {
        "Training": 2,
        "Interactive": 2,
        "Serving": 24,
    }


def test_a_burst_starts_the_window_again_and_holes_outages_and_other_pods_of_the_name_do_what_they_should(tmp_path):
    fixture = RuleFixture()
    rows = {
        "burst": (watched(), gpu("0x200 0.5 0.5 0x300"), {125: "", 215: "", 240: "p"}),
        "resumes": (watched(), gpu("0x299 0.5x200"), {140: "p", 160: "p", 170: ""}),
        "hole": (watched(), gpu(0, present=HOLE), dict.fromkeys((*range(140, 180, 2), 200), "p")),
        "watcher-away": (
            Pod(watched="1x269 stale _x29 1x300"),
            gpu(0),
            dict.fromkeys((134, *range(135, 175, 3), 200), "p"),
        ),
        "replaced": (
            Pod(phases={"Running": LONG}, start="0x179 5400x321", uids=(("a", "1x179 stale"), ("b", "_x180 1x321"))),
            gpu(0),
            {125: "", 180: "", 205: "", 225: "p"},
        ),
        "blind-for-most-of-the-time": (
            watched(),
            gpu(" ".join(["0x11 stale _x17"] * 16)),
            dict.fromkeys((135, 150, 200, 230), ""),
        ),
        "exempt": (watched(exempt_from="low-utilization"), gpu(0), {135: "", 200: ""}),
        "nan": (watched(), gpu("0x200 NaN NaN 0x300"), {125: "", 135: "p", 150: "p"}),
    }
    for name, (pod, device, firing) in rows.items():
        expect(fixture, "GPUPodIdle", situation(fixture, name, (pod,), device), firing)
    check(tmp_path, fixture)


def test_a_text_says_for_how_long_the_pod_has_been_idle(tmp_path):
    fixture = RuleFixture()
    node, _ = situation(fixture, "text", (watched("interactive"),), gpu(0))
    alert = ALERTS["GPUPodIdle"]
    labels = {**labels_of(alert), **node.workload(watched()), "namespace": node.namespace}
    text = {
        **annotations_of(alert),
        "summary": f"Pod {node.namespace}/p has used no GPU for 3 hours 20 minutes.",
        "description": (
            f"The GPUs of Job {node.namespace}/job-p (pod p on node {node.node}) have been idle, busy less than 1 %, "
            "for 3 hours 20 minutes. Nobody else can use them meanwhile."
        ),
        "dashboard_url": dashboard_of(alert, labels),
    }
    fixture.expect_alerts("GPUPodIdle", 200, (labels, text))
    check(tmp_path, fixture)


def test_some_idle_devices_of_a_busy_pod_are_reported_and_a_wholly_idle_or_evenly_low_pod_is_not(tmp_path):
    fixture = RuleFixture()
    rows = {
        "24-one-of-four-busy": ((0.9, 0, 0, 0), {50: "", 70: "p", 90: "p"}),
        "24-all-idle": ((0, 0, 0, 0), {70: "", 90: ""}),
        "24-others-little": ((0.9, 0.2, 0.2, 0.2), {70: "", 90: ""}),
        "14-one-of-eight-idle": ((*[0.95] * 7, 0), {70: "p", 90: "p"}),
        "one-device": ((0,), {70: "", 90: ""}),
    }
    for flavor in (OWN, STOCK):
        for name, (loads, firing) in rows.items():
            placed = situation(fixture, name, (watched(),), *[gpu(load) for load in loads], flavor=flavor)
            expect(fixture, "GPUPodPartlyIdle", placed, firing)
    exempt = situation(fixture, "exempt", (watched(exempt_from="low-utilization"),), gpu(0.9), gpu(0))
    expect(fixture, "GPUPodPartlyIdle", exempt, {90: ""})
    check(tmp_path, fixture)


def _of_one_workload(names: str, workload_class: str = "training") -> tuple[Pod, ...]:
    return tuple(watched(workload_class, name=name, job="gang") for name in names.split())


def test_an_idle_pod_of_a_workload_whose_others_are_busy_is_reported(tmp_path):
    fixture = RuleFixture()
    rows = {
        "28-one-idle-of-four": ("training", (0.9, 0.9, 0.9, 0), True),
        "all-idle": ("training", (0, 0, 0, 0), False),
        "most-idle": ("training", (0.9, 0, 0, 0), False),
        "all-busy": ("training", (0.9, 0.8, 0.9, 0.4), False),
        "serving": ("serving", (0.9, 0.9, 0.9, 0), False),
    }
    for name, (workload_class, loads, fires) in rows.items():
        pods = _of_one_workload("a b c d", workload_class)
        devices = [gpu(load, (pod.name,)) for load, pod in zip(loads, pods, strict=True)]
        node, _ = situation(fixture, name, pods, *devices)
        found = [{"workload": "gang", "workload_type": "Job"}] if fires else []
        fixture.expect_firing("GPUWorkloadPartlyIdle", node.namespace, 40, [])
        fixture.expect_firing("GPUWorkloadPartlyIdle", node.namespace, 70, found)
    alert = ALERTS["GPUWorkloadPartlyIdle"]
    labels = {
        **labels_of(alert),
        "namespace": "own-true-28-one-idle-of-four",
        "workload": "gang",
        "workload_type": "Job",
    }
    owner = f"Job {labels['namespace']}/gang"
    text = {
        **annotations_of(alert),
        "summary": f"{owner} has idle pods beside busy ones.",
        "description": (
            f"1 pods of {owner} have been idle for 30 minutes, while at least half of its pods are busy: d."
        ),
        "dashboard_url": dashboard_of(alert, labels),
    }
    fixture.expect_alerts(alert.name, 70, (labels, text))
    check(tmp_path, fixture)


def _recurring(fixture: RuleFixture, name: str, load: float, minutes: int, each: int) -> Node:
    """Pods that start every `each` minutes and run for `minutes`, all of one workload."""
    node = Node(fixture, OWN, name)
    for number in range(240 // each):
        first, length = 2 * each * number, 2 * minutes
        alive = f"_x{first} 1x{length - 1} stale" if first else f"1x{length - 1} stale"
        pod = Pod(
            name=f"run-{number}",
            job="nightly",
            start=alive.replace("1x", f"{first * 30}x"),
            uids=((f"uid-{number}", alive),),
            phases={"Running": alive},
        )
        node.pod(pod)
        node.gpu(number, Gpu(alive.replace("1x", f"{load}x"), pods=(pod.name,), present=alive))
    return node


def test_short_pods_that_come_again_and_again_and_are_always_idle_are_reported_by_workload(tmp_path):
    fixture = RuleFixture()
    rows = {
        "28-every-12-minutes": (0, 10, 12, True),
        "28-half-of-the-time": (0, 6, 12, True),
        "busy": (0.4, 10, 12, False),
        "once-in-two-hours": (0, 30, 120, False),
    }
    for name, (load, minutes, each, fires) in rows.items():
        node = _recurring(fixture, name, load, minutes, each)
        found = [{"workload": "nightly", "workload_type": "Job"}] if fires else []
        fixture.expect_firing("GPUWorkloadShortPodsIdle", node.namespace, 60, [])
        for minute in (150, 170, 200):
            fixture.expect_firing("GPUWorkloadShortPodsIdle", node.namespace, minute, found)
    long_lived, _ = situation(fixture, "one-long-pod", (watched(),), gpu(0))
    for minute in (60, 130, 150, 200):
        fixture.expect_firing("GPUWorkloadShortPodsIdle", long_lived.namespace, minute, [])
    check(tmp_path, fixture)


def test_a_shared_device_that_nobody_uses_is_reported_as_a_device(tmp_path):
    fixture = RuleFixture()
    alert, firing = "GPUSharedDeviceIdle", 'alertname="GPUSharedDeviceIdle", alertstate="firing"'
    for flavor in (OWN, STOCK):
        pods = (watched(), watched(name="q"))
        rows = {"28-shared": (0, ("p", "q")), "shared-used": (0.05, ("p", "q")), "exclusive": (0, ("p",))}
        for name, (load, users) in rows.items():
            node, _ = situation(fixture, name, pods, gpu(load, users), flavor=flavor)
            labels = {"node": node.node, "UUID": f"GPU-{node.namespace}-0"}
            expected = [(labels, 1.0)] if name == "28-shared" else []
            chosen = f'count by (node, UUID) (ALERTS{{{firing}, node="{node.node}"}})'
            fixture.expect(chosen, 80)
            fixture.expect(chosen, 130, *expected)
    assert ALERTS[alert].area == "efficiency"
    check(tmp_path, fixture)
