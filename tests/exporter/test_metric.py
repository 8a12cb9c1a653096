"""A metric declares its labels once; labels that do not fit cannot be made, and a family takes only its own."""

import pytest

from exporter.metric import Family, Kind, LabelError, LabelSchema, Metric, escape, labels_of_pairs, metric

PER_GPU = metric("a", Kind.GAUGE, "A.", "gpu", "UUID", "GPU_I_ID", optional=("GPU_I_ID",))


def test_a_labeled_sample_has_its_labels_in_the_order_given():
    labels, value = PER_GPU.sample(1, gpu="0", UUID="GPU-a", GPU_I_ID="7")
    assert (labels.text, value) == ('{gpu="0",UUID="GPU-a",GPU_I_ID="7"}', 1)


def test_an_optional_label_without_a_value_is_left_out_and_a_required_one_stays_empty():
    assert PER_GPU.labels(gpu="", UUID="GPU-a", GPU_I_ID="").text == '{gpu="",UUID="GPU-a"}'


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"gpu": "0"}, r"missing labels \['UUID'\]"),
        ({"gpu": "0", "UUID": "x", "Gpu": "0"}, r"unknown labels \['Gpu'\]"),
        ({}, r"missing labels \['UUID', 'gpu'\]"),
    ],
)
def test_a_missing_or_unknown_label_cannot_be_made(labels, message):
    with pytest.raises(LabelError, match=message):
        PER_GPU.labels(**labels)
    with pytest.raises(LabelError, match=message):
        labels_of_pairs(PER_GPU.schema, labels.items())


def test_labels_in_the_declared_order_are_those_given_by_name():
    metric_ = metric("b", Kind.GAUGE, "B.", "gpu", "UUID")
    assert metric_.ordered(2, "0", 'GPU-"a"') == metric_.sample(2, gpu="0", UUID='GPU-"a"')
    assert metric_.ordered(2, "0", 'GPU-"a"')[0].text == '{gpu="0",UUID="GPU-\\"a\\""}'


def test_metrics_with_the_same_label_names_share_labels():
    first, second = (Metric(name, Kind.GAUGE, "Help.", LabelSchema(("gpu",))) for name in ("first", "second"))
    assert Family(second, [first.sample(1, gpu="0")]).samples[0][0].text == '{gpu="0"}'


def test_a_label_of_ours_is_never_replaced_by_a_later_one_of_the_same_name():
    schema = LabelSchema(("gpu", "pod"))
    assert labels_of_pairs(schema, (("gpu", "0"), ("pod", "a"), ("gpu", "9"))).text == '{gpu="0",pod="a"}'


def test_label_values_are_escaped():
    assert escape('a\\b"c\nd') == 'a\\\\b\\"c\\nd'
    assert escape("plain") == "plain"
