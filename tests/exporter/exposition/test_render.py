"""The exposition parses, has no series twice, and equals what the client library itself would write."""

import gzip
import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as ClientMetric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.exposition.render import render
from exporter.metric import (
    Distribution,
    Family,
    HistogramFamily,
    Kind,
    Labels,
    LabelSchema,
    Metric,
    labels_of_pairs,
    metric,
)

NOTHING = CollectorRegistry()
LABEL_NAMES = ("gpu", "UUID", "pod", "namespace", "container")
SCHEMA = LabelSchema(LABEL_NAMES)

names = st.from_regex(r"DCGM_FI_[A-Z]{3,8}|gpugauge_[a-z]{3,8}(_total)?", fullmatch=True)
texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=12)
values = st.one_of(
    st.integers(-(2**63), 2**63), st.floats(), st.floats(0, 1), st.sampled_from([0, 0.0, -0.0, 1e-30, 2**53 + 1])
)
labels = st.lists(texts, min_size=5, max_size=5).map(lambda t: Labels(SCHEMA, LABEL_NAMES, tuple(t)))


def kinds(name):
    return st.sampled_from([Kind.COUNTER] if name.endswith("_total") else [Kind.GAUGE, Kind.UNTYPED, Kind.COUNTER])


@st.composite
def families(draw):
    found = []
    for name in draw(st.lists(names, unique_by=lambda n: n.removesuffix("_total"), max_size=5)):
        metric = Metric(name, draw(kinds(name)), draw(texts), SCHEMA)
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
    """What should be exposed: the first finite sample of each identity."""
    found = {}
    for family in given_families:
        for label, value in family.samples:
            if math.isfinite(value) and not (family.metric.kind is Kind.COUNTER and value < 0):
                found.setdefault((family.metric.name, frozenset(label.pairs)), float(value))
    return found


@given(families())
def test_the_text_format_parses_and_has_exactly_the_given_samples(given_families):
    exposition = render(given_families, NOTHING)
    found, repeated = series(parse_text(exposition.text.decode()), dcgm_counters(given_families))
    assert not repeated
    assert found == expected(given_families)


@given(families())
def test_openmetrics_parses_and_has_exactly_the_given_samples(given_families):
    exposition = render(given_families, NOTHING)
    found, repeated = series(parse_openmetrics(exposition.openmetrics.decode()), {})
    assert not repeated
    assert found == expected(given_families)
    assert exposition.openmetrics.endswith(b"# EOF\n")


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
def test_the_exposition_equals_that_of_the_client_library(given_families):
    registry = CollectorRegistry(auto_describe=False)
    given_families = [
        Family(
            f.metric,
            [
                (labels_of_pairs(SCHEMA, pairs), v)
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


def test_compressed_forms_have_the_same_content():
    plain = metric("a", Kind.GAUGE, "A.")
    exposition = render([Family(plain, [plain.sample(1)])], NOTHING)
    assert gzip.decompress(exposition.text_gzip) == exposition.text
    assert gzip.decompress(exposition.openmetrics_gzip) == exposition.openmetrics
    assert exposition.text == b"# HELP a A.\n# TYPE a gauge\na 1\n"


def test_a_repeated_or_infinite_sample_costs_only_itself_and_is_counted():
    per_gpu = metric("a", Kind.GAUGE, "A.", "gpu")
    given_samples = [(1, "0"), (2, "0"), (math.nan, "1"), (3, "2")]
    exposition = render([Family(per_gpu, [per_gpu.sample(v, gpu=gpu) for v, gpu in given_samples])], NOTHING)
    assert exposition.text.decode().splitlines()[2:] == ['a{gpu="0"} 1', 'a{gpu="2"} 3']
    assert exposition.dropped == 2


def test_exporter_metrics_are_appended_as_the_client_library_writes_them():
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Model([GaugeMetricFamily("own", "Own.", value=2.5)]))
    exposition = render((), registry)
    assert exposition.text == generate_latest(registry)
    assert exposition.openmetrics == b"# HELP own Own.\n# TYPE own gauge\nown 2.5\n# EOF\n"


def test_a_histogram_is_what_the_client_library_writes():
    registry = CollectorRegistry(auto_describe=False)
    theirs = HistogramMetricFamily("wait_seconds", 'Waits "now".', labels=["namespace", "size"])
    wait = metric("wait_seconds", Kind.HISTOGRAM, 'Waits "now".', "namespace", "size")
    series = []
    for namespace, counts, total in (("a", (1, 0, 2), 70.5), ('b"\\', (0, 0, 0), 0.0)):
        buckets = [("10.0", counts[0]), ("60.0", counts[0] + counts[1]), ("+Inf", sum(counts))]
        theirs.add_metric([namespace, "1"], buckets, total)
        series.append((wait.labels(namespace=namespace, size="1"), Distribution(counts, total)))
    registry.register(Model([theirs]))
    exposition = render([HistogramFamily(wait, (10.0, 60.0), series)], NOTHING)
    assert list(parse_text(exposition.text.decode())) == list(parse_text(generate_latest(registry).decode()))
    (ours,) = parse_openmetrics(exposition.openmetrics.decode())
    assert (ours.type, len(ours.samples)) == ("histogram", 10)


def test_a_histogram_without_series_is_left_out():
    wait = metric("wait_seconds", Kind.HISTOGRAM, "Waits.", "namespace")
    assert render([HistogramFamily(wait, (10.0,), [])], NOTHING).text == b""
