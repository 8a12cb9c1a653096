"""Annotations and labels by which users decide about alerts and classes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.kubernetes import overrides
from exporter.cluster.kubernetes.overrides import CLASS, OPTOUT, THRESHOLD, OptOut
from exporter.cluster.kubernetes.records import Namespace, Switches
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod

TODAY = datetime.fromtimestamp(NOW, UTC).date()


def day(offset):
    return (TODAY + timedelta(days=offset)).isoformat()


@pytest.mark.parametrize("offset", [0, 1, 30])
def test_a_pod_is_excepted_through_a_day_at_most_thirty_days_ahead(offset):
    assert overrides.pod_optout(f"until-{day(offset)}", NOW) == OptOut(day(offset))


@pytest.mark.parametrize("value", ["", "disabled", "true", "until-soon", "until-2027-13-01", "until-2027-1-1"])
def test_nothing_else_excepts_a_pod(value):
    assert overrides.pod_optout(value, NOW) is None


@pytest.mark.parametrize("offset", [-1, 31, 4000])
def test_a_pod_is_not_excepted_by_a_day_past_or_too_far(offset):
    assert overrides.pod_optout(f"until-{day(offset)}", NOW) is None


def test_an_exception_ends_with_its_day():
    last = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert overrides.pod_optout("until-2027-01-31", last) == OptOut("2027-01-31")
    assert overrides.pod_optout("until-2027-01-31", last + 1) is None


def test_a_namespace_is_excepted_for_good_or_until_any_day():
    assert overrides.namespace_optout("disabled", NOW) == OptOut("")
    assert overrides.namespace_optout(f"until-{day(300)}", NOW) == OptOut(day(300))
    assert overrides.namespace_optout(f"until-{day(-1)}", NOW) is None
    assert overrides.namespace_optout("off", NOW) is None


@pytest.mark.parametrize(("value", "ratio"), [("1pct", 0.01), ("10pct", 0.1), ("100pct", 1.0)])
def test_a_threshold_is_a_whole_percentage(value, ratio):
    assert overrides.threshold(value) == ratio


@pytest.mark.parametrize("value", ["", "0pct", "010pct", "101pct", "10%", "0.1", "10 pct", "-5pct", "1000pct"])
def test_other_thresholds_are_ignored(value):
    assert overrides.threshold(value) is None


@given(st.text(max_size=40))
def test_no_text_is_too_strange(value):
    overrides.pod_optout(value, NOW)
    overrides.namespace_optout(value, NOW)
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
def test_the_owner_decides_on_the_class_where_nobody_says(owner, expected):
    found = pod(objects.pod("p", owned_by=owner and objects.owner(*owner, "default")))
    assert overrides.pod_class(found, Switches()) == expected


def test_a_pod_speaks_before_its_namespace_and_the_annotation_before_the_label():
    said = pod(objects.pod("p", annotations={CLASS: "interactive"}, labels={CLASS: "training"}))
    assert overrides.pod_class(said, Switches(class_="serving")) == "interactive"
    labelled = pod(objects.pod("p", labels={CLASS: "interactive"}))
    assert overrides.pod_class(labelled, Switches(class_="serving")) == "interactive"
    silent = pod(objects.pod("p"))
    assert overrides.pod_class(silent, Switches(class_="serving")) == "serving"


def test_a_malformed_class_is_passed_over():
    strange = pod(objects.pod("p", annotations={CLASS: "Serving!"}))
    assert overrides.pod_class(strange, Switches(class_="serving")) == "serving"
    assert overrides.pod_class(strange, Switches(class_="what")) == "training"


def test_malformed_values_are_found_and_expired_ones_are_not_malformed():
    pods = [
        pod(objects.pod("a", annotations={OPTOUT: f"until-{day(31)}", THRESHOLD: "10%", CLASS: "batch"})),
        pod(objects.pod("b", annotations={OPTOUT: f"until-{day(-100)}", THRESHOLD: "10pct", CLASS: "serving"})),
        pod(objects.pod("c", annotations={OPTOUT: "disabled"})),
    ]
    spaces = [
        Namespace("ok", Switches(optout="disabled", threshold="5pct")),
        Namespace("far", Switches(optout=f"until-{day(900)}")),
        Namespace("bad", Switches(optout="forever")),
    ]
    found = {(each.namespace, each.pod, each.key) for each in overrides.malformed(pods, spaces, NOW)}
    assert found == {
        ("default", "a", OPTOUT),
        ("default", "a", THRESHOLD),
        ("default", "a", CLASS),
        ("default", "c", OPTOUT),
        ("bad", "", OPTOUT),
    }


def test_a_very_long_value_is_cut_and_stays_malformed():
    kept = overrides.pod_switches({THRESHOLD: "9" * 10_000}, {})
    assert len(kept.threshold) == 64
    assert overrides.threshold(kept.threshold) is None
