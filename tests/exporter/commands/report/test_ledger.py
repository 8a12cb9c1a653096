"""Every GPU-hour is in one state, whatever was observed: the money closes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.report.devices import device_table, gpu_share
from exporter.commands.report.fetch import expressions
from exporter.commands.report.ledger import StateLedger, closing_error
from exporter.commands.report.period import Part
from exporter.commands.report.prices import DayPrices

DAY = Part(0, 86_400)
PRICES = DayPrices({("H100", ""): (2.0, "EUR"), ("H100", "cheap"): (1.0, "EUR")})
GPU = {"node": "n", "UUID": "GPU-0"}
MIG = {**GPU, "GPU_I_ID": "1"}


def answers(**given):
    """Answers with these (labels, value) and nothing else; a GPU of a known model that was there all day."""
    found = {name: [] for name in expressions()}
    defaults = {"GPUS": [(GPU, 288)], "DEVICES": [({**GPU, "model": "H100"}, 288)]}
    for name, samples in (defaults | given).items():
        found[name] = [PrometheusSample(labels, value) for labels, value in samples]
    return found


def ledger_of(**given):
    found, ledger = answers(**given), StateLedger()
    ledger.add(DAY, found, device_table(found, PRICES))
    return ledger


def hours(**given):
    total = ledger_of(**given).total
    return {name: round(getattr(total.hours, name), 3) for name in total.hours.__slots__ if getattr(total.hours, name)}


def states(labels=GPU, **seconds):
    return [({**labels, "state": name}, value) for name, value in seconds.items()]


def test_what_the_exporter_counted_comes_first():
    assert hours(STATES=states(busy=36_000, idle=43_200, unallocated=7200)) == {
        "busy": 10, "idle": 12, "unallocated": 2,
    }  # fmt: skip


def test_what_nothing_shows_is_unobserved():
    assert hours() == {"unobserved": 24}
    assert hours(STATES=states(busy=3600)) == {"busy": 1, "unobserved": 23}


def test_without_counters_samples_show_what_was_allocated():
    found = hours(ALLOCATED=[(GPU, 144)], ALLOCATION_KNOWN=[(GPU, 240)])
    assert found == {"activity_unknown": 12, "unallocated": 8, "unobserved": 4}


def test_unknown_time_is_allocated_as_far_as_a_pod_had_the_gpu():
    known = {"ALLOCATED": [(GPU, 120)], "ALLOCATION_KNOWN": [(GPU, 288)]}
    assert hours(STATES=states(busy=18_000, unknown=68_400), **known) == {
        "busy": 5, "activity_unknown": 5, "unobserved": 14,
    }  # fmt: skip
    assert hours(STATES=states(unknown=86_400)) == {"unobserved": 24}


def test_a_gpu_that_is_down_or_not_offered_is_unhealthy():
    assert hours(DOWN=[(GPU, 288)]) == {"unhealthy": 24}
    assert hours(STATES=states(unallocated=86_400), UNHEALTHY=[(GPU, 72)]) == {"unallocated": 18, "unhealthy": 6}


def test_stranded_time_is_part_of_the_unallocated():
    assert hours(STATES=states(unallocated=43_200, busy=43_200), STRANDED=[({"node": "n"}, 72)]) == {
        "busy": 12, "unallocated": 6, "stranded": 6,
    }  # fmt: skip
    assert hours(STATES=states(busy=86_400), STRANDED=[({"node": "n"}, 288)]) == {"busy": 24}


def test_mig_devices_count_by_compute_slices_and_the_rest_is_stranded():
    device = {**MIG, "model": "H100", "GPU_I_PROFILE": "3g.40gb"}
    found = hours(
        DEVICES=[({**GPU, "model": "H100"}, 288), (device, 288)], STATES=states(MIG, busy=43_200, unallocated=43_200)
    )
    assert found == {"busy": 5.143, "unallocated": 5.143, "stranded": 13.714}


def test_compute_instances_count_instead_of_their_gpu_instance():
    devices = [({**GPU, "model": "H100"}, 288), ({**MIG, "model": "H100", "GPU_I_PROFILE": "2g.20gb"}, 288)]
    parts = [{**MIG, "GPU_CI_ID": str(number)} for number in (0, 1)]
    devices += [({**each, "model": "H100", "GPU_I_PROFILE": "1c.2g.20gb"}, 288) for each in parts]
    counted = [row for each in parts for row in states(each, busy=86_400)]
    assert hours(DEVICES=devices, STATES=counted) == {"busy": 6.857, "stranded": 17.143}


@pytest.mark.parametrize(
    ("model", "profile", "share"),
    [
        ("NVIDIA-H100-80GB-HBM3", "", 1),
        ("NVIDIA-H100-80GB-HBM3", "3g.40gb", 3 / 7),
        ("NVIDIA-H100-80GB-HBM3", "1c.3g.40gb", 1 / 7),
        ("NVIDIA-A30", "2g.12gb", 2 / 4),
        ("unheard-of", "7g.999gb", 1),
    ],
)
def test_the_share_of_a_mig_device(model, profile, share):
    assert gpu_share(model, profile) == pytest.approx(share)


def test_the_price_is_that_of_the_pool_and_what_has_none_is_named():
    pools = [({"node": "n", "pool": "cheap"}, 1)]
    assert ledger_of(STATES=states(busy=86_400)).total.price_of_all == 48
    assert ledger_of(STATES=states(busy=86_400), POOLS=pools).total.price_of_all == 24
    unknown = ledger_of(DEVICES=[({**GPU, "model": "L4"}, 288)]).total
    assert (unknown.price_of_all, unknown.unpriced_hours) == (0, 24)


SECONDS = st.floats(0, 100_000)
STEPS = st.floats(0, 288)


@given(
    st.fixed_dictionaries(dict.fromkeys(("busy", "idle", "shared", "unknown", "unallocated"), SECONDS)),
    st.tuples(STEPS, STEPS, STEPS, STEPS, STEPS, STEPS),
)
def test_the_states_always_add_up(seconds, steps):
    there, down, unhealthy, allocated, known, stranded = steps
    ledger = ledger_of(
        GPUS=[(GPU, there)],
        STATES=states(**seconds),
        DOWN=[(GPU, down)],
        UNHEALTHY=[(GPU, unhealthy)],
        ALLOCATED=[(GPU, allocated)],
        ALLOCATION_KNOWN=[(GPU, known)],
        STRANDED=[({"node": "n"}, stranded)],
    )
    total = ledger.total
    assert closing_error(total) < 1e-9
    assert total.gpu_hours == pytest.approx(there / 12)
    assert all(getattr(total.hours, name) >= -1e-9 for name in total.hours.__slots__)
