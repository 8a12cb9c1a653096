"""Labels of series from a pod's labels and annotations: names as in dcgm-exporter, none of ours, within limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.metric import LabelSchema, labels_of_pairs
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.series.component_labels import ComponentLabelCache
from exporter.node.devices.series.labels import LabelStyle, device_schema
from exporter.node.devices.series.link_labels import link_schema
from exporter.node.pods.exposed_labels import MAX_LABELS, MAX_NAME, MAX_VALUE, exposed_labels, label_name
from exporter.node.pods.name_patterns import NamePatterns
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import NodePod

EVERY = NamePatterns.anywhere((".",))
BOTH = PodOptions("api", labels=EVERY, annotations=EVERY, uid=True)
LABELS = PodOptions("api", labels=EVERY)


def exposed(labels, options=LABELS, **more):
    return exposed_labels(NodePod("ml", "p", "u", labels=labels, **more), options)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("app", "app"),
        ("app.kubernetes.io/name", "app_kubernetes_io_name"),
        ("Team-X", "Team_X"),
        ("1st", "label_1st"),
        ("gpu", "label_gpu"),
        ("pod", "label_pod"),
        ("node", "label_node"),
        ("job", "label_job"),
        ("err.code", "label_err_code"),
        ("exported_pod", "label_exported_pod"),
        ("gpu.namespace", "label_gpu_namespace"),
        ("__name__", "label___name__"),
        ("DCGM_FI_DRIVER_VERSION", "label_DCGM_FI_DRIVER_VERSION"),
        ("größe", "gr__e"),
    ],
)
def test_a_name_is_spelled_as_in_dcgm_exporter_and_never_one_that_has_a_meaning(key, name):
    assert label_name(key) == name


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("hostname", ["hostname", "Hostname", "both"])
def test_no_label_of_a_pod_has_a_name_of_ours(old, hostname):
    style = LabelStyle("n", hostname_label=hostname, old_namespace=old)
    components = ComponentLabelCache(style, parse("DCGM_FI_DEV_GPU_TEMP, gauge, x", "f")).schemas.values()
    schemas = [device_schema(style, ()), link_schema(style, ()), *components]
    names = {name for schema in schemas for name in schema.names}
    assert {"UUID", "uuid"} & names
    assert not {label_name(name) for name in names} & names


def test_names_that_become_one_are_numbered_in_the_order_of_the_names():
    pairs = (("a_b_conflict1", "3"), ("a_b_conflict2", "1"), ("a_b_conflict3", "2"), ("c", "4"))
    assert exposed({"a/b": "1", "a_b": "2", "a-b": "3", "c": "4"}).pairs == pairs
    assert exposed({"c": "4", "a-b": "3", "a_b": "2", "a/b": "1"}).pairs == pairs
    assert exposed({"a/b": "1", "c": "4"}).pairs == (("a_b", "1"), ("c", "4"))
    assert exposed({"node": "1", "label/node": "2"}).pairs == (
        ("label_node_conflict1", "2"),
        ("label_node_conflict2", "1"),
    )


def test_a_name_that_only_looks_numbered_is_left_out_and_counted():
    found = exposed({"a/b": "1", "a-b": "2", "a_b_conflict1": "3"})
    assert found.pairs == (("a_b_conflict1", "2"), ("a_b_conflict2", "1"))
    assert found.left_out == 1


def test_number_and_length_are_limited_and_what_that_costs_is_counted():
    many = exposed({f"l{number:03}": "x" for number in range(MAX_LABELS + 3)})
    assert [name for name, _ in many.pairs] == [f"l{number:03}" for number in range(MAX_LABELS)]
    assert (many.left_out, many.shortened) == (3, 0)
    long = exposed({"a": "x" * (MAX_VALUE + 1), "b" * (MAX_NAME + 1): "x", "c": ""})
    assert long.pairs == (("a", "x" * MAX_VALUE),)
    assert (long.left_out, long.shortened) == (1, 1)


def test_of_a_label_and_an_annotation_of_one_name_the_label_counts():
    found = exposed({"a": "label"}, BOTH, annotations={"a": "annotation", "b": "x"})
    assert found.pairs == (("pod_uid", "u"), ("a", "label"), ("b", "x"))
    assert exposed({"a": "label"}, PodOptions("api")).pairs == ()


texts = st.text(max_size=40)


@given(st.dictionaries(texts, texts, max_size=40), st.dictionaries(texts, texts, max_size=40))
def test_whatever_a_pod_is_labeled_with_makes_labels_that_a_series_can_have(labels, annotations):
    pairs = exposed(labels, BOTH, annotations=annotations).pairs
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names) <= MAX_LABELS + 1
    assert labels_of_pairs(LabelSchema(tuple(names)), pairs).pairs == pairs
    assert all(name.isascii() and name.isidentifier() and not name.startswith("__") for name in names)
