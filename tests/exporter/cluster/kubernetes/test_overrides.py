"""Overrides: annotations and labels that set workload classes, exemptions and thresholds."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.kubernetes.objects import overrides
from exporter.cluster.kubernetes.objects.overrides import EXEMPTION, MAINTENANCE, THRESHOLD, WORKLOAD_CLASS, Exemption
from exporter.cluster.kubernetes.objects.records import Namespace, Overrides
from simulators import objects
from tests.exporter.cluster.fixture import NOW, node, pod

TODAY = datetime.fromtimestamp(NOW, UTC).date()


def day(offset):
    return (TODAY + timedelta(days=offset)).isoformat()


@pytest.mark.parametrize("offset", [0, 1, 30])
def test_a_pod_is_exempt_through_a_day_at_most_thirty_days_ahead(offset):
    assert overrides.pod_exemption(f"until-{day(offset)}", NOW) == Exemption(day(offset))


@pytest.mark.parametrize("value", ["", "disabled", "true", "until-soon", "until-2027-13-01", "until-2027-1-1"])
def test_no_other_value_exempts_a_pod(value):
    assert overrides.pod_exemption(value, NOW) is None


@pytest.mark.parametrize("offset", [-1, 31, 4000])
def test_a_pod_is_not_exempt_through_a_past_day_or_one_too_far_ahead(offset):
    assert overrides.pod_exemption(f"until-{day(offset)}", NOW) is None


def test_an_exemption_ends_with_its_last_day():
    last = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert overrides.pod_exemption("until-2027-01-31", last) == Exemption("2027-01-31")
    assert overrides.pod_exemption("until-2027-01-31", last + 1) is None


def test_a_namespace_is_exempt_without_end_or_through_any_day_ahead():
    assert overrides.namespace_exemption("disabled", NOW) == Exemption("")
    assert overrides.namespace_exemption(f"until-{day(300)}", NOW) == Exemption(day(300))
    assert overrides.namespace_exemption(f"until-{day(-1)}", NOW) is None
    assert overrides.namespace_exemption("off", NOW) is None


@pytest.mark.parametrize(("value", "ratio"), [("1pct", 0.01), ("10pct", 0.1), ("100pct", 1.0)])
def test_a_threshold_is_a_whole_percentage(value, ratio):
    assert overrides.threshold(value) == ratio


@pytest.mark.parametrize("value", ["", "0pct", "010pct", "101pct", "10%", "0.1", "10 pct", "-5pct", "1000pct"])
def test_other_thresholds_are_ignored(value):
    assert overrides.threshold(value) is None


@given(st.text(max_size=40))
def test_any_text_can_be_parsed(value):
    overrides.pod_exemption(value, NOW)
    overrides.namespace_exemption(value, NOW)
    ratio = overrides.threshold(value)
    assert ratio is None or 0 < ratio <= 1


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (None, "training"),
        (("Job", "j"), "training"),
        (("PyTorchJob", "j"), "training"),
        (("StatefulSet", "s"), "serving"),
        (("LeaderWorkerSet", "s"), "serving"),
        (("InferenceService", "s"), "serving"),
        (("Notebook", "s"), "interactive"),
    ],
)
def test_without_an_override_the_workload_type_decides_on_the_workload_class(owner, expected):
    found = pod(objects.pod("p", owned_by=owner and objects.owner(*owner, "default")))
    assert overrides.workload_class(found, Overrides()) == expected


def test_a_pod_takes_precedence_over_its_namespace_and_an_annotation_over_a_label():
    annotated = pod(objects.pod("p", annotations={WORKLOAD_CLASS: "interactive"}, labels={WORKLOAD_CLASS: "training"}))
    assert overrides.workload_class(annotated, Overrides(workload_class="serving")) == "interactive"
    labeled = pod(objects.pod("p", labels={WORKLOAD_CLASS: "interactive"}))
    assert overrides.workload_class(labeled, Overrides(workload_class="serving")) == "interactive"
    neither = pod(objects.pod("p"))
    assert overrides.workload_class(neither, Overrides(workload_class="serving")) == "serving"


def test_a_malformed_workload_class_is_ignored():
    strange = pod(objects.pod("p", annotations={WORKLOAD_CLASS: "Serving!"}))
    assert overrides.workload_class(strange, Overrides(workload_class="serving")) == "serving"
    assert overrides.workload_class(strange, Overrides(workload_class="what")) == "training"


def test_malformed_values_are_found_and_an_expired_exemption_is_not_malformed():
    pods = [
        pod(objects.pod("a", annotations={EXEMPTION: f"until-{day(31)}", THRESHOLD: "10%", WORKLOAD_CLASS: "batch"})),
        pod(
            objects.pod(
                "b", annotations={EXEMPTION: f"until-{day(-100)}", THRESHOLD: "10pct", WORKLOAD_CLASS: "serving"}
            )
        ),
        pod(objects.pod("c", annotations={EXEMPTION: "disabled"})),
    ]
    namespaces = [
        Namespace("ok", Overrides(exemption="disabled", threshold="5pct")),
        Namespace("far", Overrides(exemption=f"until-{day(900)}")),
        Namespace("bad", Overrides(exemption="forever")),
    ]
    nodes = [
        msgspec.structs.replace(node(objects.node(name)), maintenance=value)
        for name, value in [
            ("n1", f"until-{day(14)}"),
            ("n2", f"until-{day(15)}"),
            ("n3", f"until-{day(-9)}"),
            ("n4", ""),
        ]
    ]
    found = {(each.where, each.key) for each in overrides.malformed(pods, namespaces, nodes, NOW)}
    assert found == {
        ("pod default/a", EXEMPTION),
        ("pod default/a", THRESHOLD),
        ("pod default/a", WORKLOAD_CLASS),
        ("pod default/c", EXEMPTION),
        ("namespace bad", EXEMPTION),
        ("node n2", MAINTENANCE),
    }


def test_a_very_long_value_is_cut_and_stays_malformed():
    kept = overrides.pod_overrides({THRESHOLD: "9" * 10_000}, {})
    assert len(kept.threshold) == 64
    assert overrides.threshold(kept.threshold) is None
