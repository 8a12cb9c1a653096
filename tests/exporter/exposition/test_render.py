"""The page parses, repeats nothing, and equals what the client library itself would write."""

import gzip
import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as ClientMetric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.exposition.render import render
from exporter.metric import Family, Kind, Labels, Metric

NOTHING = CollectorRegistry()
LABEL_NAMES = ("gpu", "UUID", "pod", "namespace", "container")

names = st.from_regex(r"DCGM_FI_[A-Z]{3,8}|gpugauge_[a-z]{3,8}(_total)?", fullmatch=True)
texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=12)
values = st.one_of(
    st.integers(-(2**63), 2**63), st.floats(), st.floats(0, 1), st.sampled_from([0, 0.0, -0.0, 1e-30, 2**53 + 1])
)
labels = st.lists(texts, min_size=5, max_size=5).map(lambda t: Labels(tuple(zip(LABEL_NAMES, t, strict=True))))


def kinds(name):
    return st.sampled_from([Kind.COUNTER] if name.endswith("_total") else [Kind.GAUGE, Kind.UNTYPED, Kind.COUNTER])


@st.composite
def families(draw):
    found = []
    for name in draw(st.lists(names, unique_by=lambda n: n.removesuffix("_total"), max_size=5)):
        metric = Metric(name, draw(kinds(name)), draw(texts), LABEL_NAMES)
        found.append(Family(metric, draw(st.lists(st.tuples(labels, values), max_size=5))))
    return found


def dcgm_counters(given_families):
    """Counters under a DCGM name: the client library's text parser adds `_total` to their samples."""
    counters = {f.metric.name for f in given_families if f.metric.kind is Kind.COUNTER}
    return {f"{name}_total": name for name in counters if not name.endswith("_total")}


def series(parsed, renamed):
    """Every sample of parsed families by identity, and whether any came twice."""
    samples = [
        (renamed.get(s.name, s.name), frozenset(s.labels.items()), float(s.value)) for f in parsed for s in f.samples
    ]
    found = {(name, pairs): value for name, pairs, value in samples}
    return found, len(found) != len(samples)


def expected(given_families):
    """What should be on the page: the first finite sample of each identity."""
    found = {}
    for family in given_families:
        for label, value in family.samples:
            if math.isfinite(value) and not (family.metric.kind is Kind.COUNTER and value < 0):
                found.setdefault((family.metric.name, frozenset(label.pairs)), float(value))
    return found


@given(families())
def test_the_text_page_parses_and_holds_exactly_the_readings(given_families):
    page = render(given_families, NOTHING)
    found, repeated = series(parse_text(page.text.decode()), dcgm_counters(given_families))
    assert not repeated
    assert found == expected(given_families)


@given(families())
def test_the_openmetrics_page_parses_and_holds_exactly_the_readings(given_families):
    page = render(given_families, NOTHING)
    found, repeated = series(parse_openmetrics(page.openmetrics.decode()), {})
    assert not repeated
    assert found == expected(given_families)
    assert page.openmetrics.endswith(b"# EOF\n")


def client_family(family):
    """The same family as the client library models it; a counter of DCGM's naming can only be untyped there."""
    metric = family.metric
    if metric.kind is Kind.COUNTER and metric.name.endswith("_total"):
        found = CounterMetricFamily(metric.name, metric.help, labels=LABEL_NAMES)
    elif metric.kind is Kind.GAUGE:
        found = GaugeMetricFamily(metric.name, metric.help, labels=LABEL_NAMES)
    else:
        found = ClientMetric(metric.name, metric.help, "untyped")
        for label, value in family.samples:
            found.add_sample(metric.name, dict(label.pairs), value)
        return found
    for label, value in family.samples:
        found.add_metric([v for _, v in label.pairs], value)
    return found


class Model:
    """A registry's collector of the client library's own families."""

    def __init__(self, found):
        self.found = found

    def collect(self):
        return self.found


@given(families())
def test_the_page_equals_what_the_client_library_renders(given_families):
    registry = CollectorRegistry(auto_describe=False)
    given_families = [
        Family(
            f.metric,
            [
                (Labels(pairs), v)
                for (pairs, v) in {lab.pairs: v for lab, v in f.samples}.items()
                if math.isfinite(v) and v >= 0
            ],
        )
        for f in given_families
    ]
    registry.register(Model([client_family(f) for f in given_families if f.samples]))
    theirs = list(parse_text(generate_latest(registry).decode()))
    ours = list(parse_text(render(given_families, NOTHING).text.decode()))
    renamed = dcgm_counters(given_families)
    assert series(ours, renamed) == series(theirs, renamed)
    assert {f.name: f.documentation for f in ours} == {f.name: f.documentation for f in theirs}
    plain = {f.name: f.type for f in theirs if f.name not in renamed.values()}
    assert {f.name: f.type for f in ours if f.name not in renamed.values()} == plain


def test_compressed_forms_hold_the_same_page():
    page = render([Family(Metric("a", Kind.GAUGE, "A.", ()), [(Labels(()), 1)])], NOTHING)
    assert gzip.decompress(page.text_gzip) == page.text
    assert gzip.decompress(page.openmetrics_gzip) == page.openmetrics
    assert page.text == b"# HELP a A.\n# TYPE a gauge\na 1\n"


def test_a_repeated_or_unprintable_sample_costs_only_itself_and_is_counted():
    same = Labels((("gpu", "0"),))
    family = Family(
        Metric("a", Kind.GAUGE, "A.", ("gpu",)),
        [(same, 1), (Labels((("gpu", "0"),)), 2), (Labels((("gpu", "1"),)), math.nan), (Labels((("gpu", "2"),)), 3)],
    )
    page = render([family], NOTHING)
    assert page.text.decode().splitlines()[2:] == ['a{gpu="0"} 1', 'a{gpu="2"} 3']
    assert page.dropped == 2


def test_a_label_of_ours_is_never_replaced_by_a_later_one_of_the_same_name():
    assert Labels((("gpu", "0"), ("pod", "a"), ("gpu", "9"))).text == '{gpu="0",pod="a"}'
