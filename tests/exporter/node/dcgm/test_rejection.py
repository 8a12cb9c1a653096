"""A rejected call is narrowed down to the devices and fields that it was rejected for."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.status_scope import OF_A_GPU, OF_THE_ENGINE
from exporter.node.dcgm.reading.rejection import narrow
from exporter.node.dcgm.targets.targets import WatchTarget, merged

DEVICES, FIELDS = range(6), range(100, 109)
GPU = 1
NOT_TOGETHER, IN_USE = -38, -37


def whole_target(watch="basic"):
    """Three GPUs, each with two devices; the last device has two entities."""
    devices = (*DEVICES, DEVICES[-1])
    entities = tuple((GPU, position) for position in range(len(devices)))
    return WatchTarget(watch, entities, devices, tuple(f"GPU-{device // 2}" for device in devices), tuple(FIELDS))


def samples_of(targets):
    return {pair for target in targets for pair in product(target.entities, target.fields)}


class Call:
    """A call that fails for some (entity, field), each with a status: the first of them is the answer."""

    def __init__(self, statuses):
        self.statuses, self.count = statuses, 0

    def __call__(self, target):
        self.count += 1
        for pair in product(target.entities, target.fields):
            if pair in self.statuses:
                raise StatusError("dcgmWatchFields", self.statuses[pair])


def narrowed(call, target):
    with pytest.raises(StatusError) as failed:
        call(target)
    return narrow(target, failed.value, call)


ENTITY = st.sampled_from(whole_target().entities)


@given(st.dictionaries(st.tuples(ENTITY, st.sampled_from(FIELDS)), st.sampled_from([-3, -6, -17]), min_size=1))
def test_what_is_accepted_and_rejected_is_all_and_what_is_accepted_is_good(statuses):
    whole = whole_target()
    found = narrowed(Call(statuses), whole)
    accepted, rejected = samples_of(found.accepted), samples_of([each.target for each in found.rejected])
    assert accepted | rejected == samples_of([whole])
    assert accepted & (rejected | statuses.keys()) == set()


@given(st.sets(ENTITY, min_size=1, max_size=6))
def test_devices_that_fail_for_every_field_are_found_exactly(entities):
    statuses = dict.fromkeys(product(entities, FIELDS), -3)
    found = narrowed(Call(statuses), whole_target())
    assert samples_of([each.target for each in found.rejected]) == statuses.keys()


@given(st.sets(st.sampled_from(FIELDS), min_size=1, max_size=8))
def test_fields_that_fail_for_every_device_are_found_exactly(fields):
    whole = whole_target()
    statuses = dict.fromkeys(product(whole.entities, fields), -6)
    found = narrowed(Call(statuses), whole)
    assert samples_of([each.target for each in found.rejected]) == statuses.keys()


def test_of_a_lost_gpu_no_field_is_tried():
    statuses = dict.fromkeys(product(whole_target().entities[2:4], FIELDS), -18)
    call = Call(statuses)
    found = narrowed(call, whole_target())
    assert samples_of([each.target for each in found.rejected]) == statuses.keys()
    assert call.count < 2 * len(DEVICES)


@pytest.mark.parametrize("status", sorted(OF_THE_ENGINE))
def test_a_status_of_the_engine_ends_the_search(status):
    call = Call(dict.fromkeys(product(whole_target().entities, FIELDS), status))
    with pytest.raises(StatusError):
        narrowed(call, whole_target())
    assert call.count == 1


def test_of_profiling_fields_that_cannot_be_measured_together_the_first_remain():
    class FourAtOnce(Call):
        def __call__(self, target):
            super().__call__(target)
            if len(target.fields) > 4:
                raise StatusError("dcgmWatchFields", NOT_TOGETHER)

    whole = whole_target("profiling")
    in_use = dict.fromkeys(product(whole.entities[:2], FIELDS), IN_USE)
    found = narrowed(FourAtOnce(in_use), whole)
    assert samples_of(found.accepted) == set(product(whole.entities[2:], FIELDS[:4]))


def test_parts_are_merged_into_as_few_targets_as_there_are_sets_of_fields():
    whole = whole_target()
    first, second = whole.entities[:3], whole.entities[3:]
    parts = [
        whole.restricted_to(first, whole.fields[:2]),
        whole.restricted_to(first, whole.fields[2:]),
        *(whole.restricted_to((entity,), whole.fields) for entity in second),
    ]
    assert merged(parts, whole) == [whole]
    assert OF_A_GPU.isdisjoint(OF_THE_ENGINE)
