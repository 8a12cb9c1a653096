"""Kubernetes quantities."""

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.kubernetes.objects.quantity import amount, devices


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("8", 8),
        (8, 8),
        ("+8", 8),
        ("1k", 1000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("512Gi", 512 * 2**30),
        ("0.5Ki", 512),
        (".5", Decimal("0.5")),
        ("5.", 5),
        ("100m", Decimal("0.1")),
        ("1500u", Decimal("0.0015")),
        ("3n", Decimal("3e-9")),
        ("-2", -2),
    ],
)
def test_a_quantity_has_the_value_that_kubernetes_defines(text, value):
    assert amount(text) == value


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1ki", "1KB", "Gi", "1e", "1e3Gi", "0x8", "1,5", "NaN", "inf", "\u0661", "1" * 65]
)
def test_other_texts_are_not_quantities(text):
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        amount(text)


@pytest.mark.parametrize("text", ["-1", "0.5", "100m", "1e30"])
def test_a_number_of_devices_is_whole_and_not_negative(text):
    with pytest.raises(ValueError, match="is not a number of devices"):
        devices(text)


@given(st.integers(0, 10**9))
def test_a_whole_number_is_that_many_devices(count):
    assert devices(str(count)) == devices(count) == count


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_value_error(text):
    with suppress(ValueError):
        assert amount(text).is_finite()


@given(st.integers(0, 10**6), st.sampled_from(["Ki", "Mi", "Gi", "k", "M", "G"]))
def test_a_suffix_multiplies(count, suffix):
    assert amount(f"{count}{suffix}") == count * amount(f"1{suffix}")
