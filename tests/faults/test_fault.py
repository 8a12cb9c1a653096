"""A row is shown only while `/metrics` and `/readyz` are what it says."""

import pytest

from tests.faults.fault import Exposed, Fault, as_before, fault, rows_of

EXPOSED = """
# HELP a_up Whether it is up.
a_up{source="dcgm",reason="x"} 0.0
a_up{source="nvml"} 1.0
DCGM_FI_DEV_GPU_TEMP{gpu="0"} 40
gpugauge_source_up{source="dcgm"} 1
"""


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Fault("x", ('a_up{source="dcgm"} 0',)), True),
        (Fault("x", ("a_up 1", "DCGM_FI_DEV_GPU_TEMP > 0"), absent=("DCGM_FI_PROF",)), True),
        (Fault("x", ('a_up{source="dcgm"} 1',)), False),
        (Fault("x", ('a_up{source="dcgm"} > 0',)), False),
        (Fault("x", ('a_up{source="kubelet"} 0',)), False),
        (Fault("x", ("a 1",)), False),
        (Fault("x", absent=("DCGM_",)), False),
    ],
)
def test_a_row_is_shown_when_it_has_every_sample_and_nothing_that_is_to_be_absent(row, shown):
    assert row.is_shown(Exposed(EXPOSED)) is shown


@pytest.mark.parametrize(
    ("ready", "unready", "shown"),
    [((200, "ok\n"), None, True), ((503, "late\n"), "late", True), ((503, "x\n"), "late", False)],
)
def test_a_row_waits_for_its_answer_of_readyz(ready, unready, shown):
    row = Fault("x", ("a_up 1",), unready=unready)

    def get(path):
        return ready if path == "/readyz" else (200, EXPOSED)

    if shown:
        assert row.wait_until_shown(get).value("a_up", source="nvml") == 1
    else:
        with pytest.raises(AssertionError, match="not shown"):
            row.wait_until_shown(get, 0.05)


def test_a_recovery_must_restore_every_series_of_devices_and_what_is_up():
    recovered = as_before(Exposed(EXPOSED))
    assert recovered(Exposed(EXPOSED.replace(" 40", " 41").replace("a_up", "b_up")))
    assert not recovered(
        Exposed(EXPOSED.replace('gpugauge_source_up{source="dcgm"} 1', 'gpugauge_source_up{source="dcgm"} 0'))
    )
    assert not recovered(Exposed(EXPOSED.replace("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK")))


def test_a_recovery_takes_no_longer_than_the_row_says():
    with pytest.raises(AssertionError, match="not recovered"):
        Fault("x", pause=0.05).wait_until_recovered(lambda _: (200, ""), lambda _: False, 0.01, busy=0.0)


def test_the_rows_of_a_test_are_those_that_it_declares():
    one, other = Fault("one"), Fault("other")

    @fault(one, other)
    def with_two(row): ...

    @pytest.mark.parametrize("more", [1, 2])
    @fault(name="one")
    def with_one(row, more): ...

    assert rows_of(with_two) == (one, other)
    assert rows_of(with_one) == (one,)
    assert rows_of(as_before) == rows_of(Fault) == ()
