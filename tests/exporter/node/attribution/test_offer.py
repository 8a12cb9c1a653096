"""What the kubelet offers to pods, and what that says of each device. No I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_names import ResourcePatterns
from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.attribution.offer.offer import UNKNOWN, Offer, OfferCache, offered_devices, unmatched_offer
from exporter.node.attribution.offer.reader import OfferInCollections, OfferReader
from exporter.snapshot import CollectionCycle, SourceHealth
from exporter.source import SourceError
from tests.clock import Clock
from tests.exporter.node.attribution.node_devices import GPU, M7, M8, MIG, U0, U1, UUID, M

INVENTORY = (U0, U1, M, M7, M8)
NO_PATTERNS = ResourcePatterns()
EVERYTHING = frozenset({(GPU, UUID), (GPU, "GPU-1"), (MIG, "MIG-aaaa"), (MIG, "MIG-GPU-m/8/0")})


def states(ids, before=None, inventory=INVENTORY):
    before = ids if before is None else before
    return offered_devices(inventory, Offer(frozenset(ids), frozenset(before)), NO_PATTERNS)


def test_what_is_offered_is_allocatable_and_a_partitioned_gpu_never_is():
    assert states(EVERYTHING) == (True, True, None, True, True)


def test_a_device_that_is_left_out_twice_is_not_offered():
    without = EVERYTHING - {(GPU, "GPU-1")}
    assert states(without, EVERYTHING) == (True, None, None, True, True)
    assert states(without) == (True, False, None, True, True)


def test_the_first_answer_alone_makes_no_device_one_that_is_not_offered():
    assert offered_devices((U0, U1), Offer(frozenset({(GPU, UUID)})), NO_PATTERNS) == (True, None)


@pytest.mark.parametrize("ids", [(), [("amd.com/gpu", "0000:07:00.0")], [(GPU, "")]])
def test_where_no_gpu_is_offered_by_a_plugin_nothing_is_said(ids):
    assert states(ids) == (None,) * 5


def test_an_id_that_is_not_understood_makes_uncertain_only_the_devices_that_it_could_mean():
    assert states({(GPU, UUID), (GPU, "odd")}) == (True, None, None, None, None)
    assert states({(GPU, UUID), (GPU, "GPU-of-another-node")}) == (True, False, None, False, False)
    # A MIG device that was not read may be on a GPU that was partitioned after it was, not on one without MIG mode.
    assert states({(GPU, UUID), (MIG, "MIG-new")}) == (True, False, None, None, None)


def test_an_index_is_an_id_where_the_resource_is_configured_so():
    offer = Offer(frozenset({("nvidia.com/gpu-x", "1")}), frozenset())
    assert offered_devices((U0, U1), offer, ResourcePatterns(("nvidia.com/gpu-*",))) == (False, True)


@given(st.sets(st.sampled_from(sorted(EVERYTHING))), st.sets(st.sampled_from(sorted(EVERYTHING))))
def test_no_device_that_is_or_was_offered_is_called_not_offered(ids, before):
    whole = states(EVERYTHING)
    for now, then, each in zip(states(ids, before), states(before, before), whole, strict=True):
        assert now is not False or (each and not then)


def test_ids_that_match_no_device_have_their_reason():
    ids = frozenset({(GPU, UUID), (GPU, "odd"), (MIG, "MIG-new")})
    assert list(unmatched_offer(INVENTORY, ids, NO_PATTERNS)) == [
        ((GPU, "odd"), UnmatchedReason.UNKNOWN_FORM),
        ((MIG, "MIG-new"), UnmatchedReason.NO_SUCH_INSTANCE),
    ]


def test_the_family_has_the_devices_of_which_it_is_certain_and_is_made_once():
    cache, offer = OfferCache("node-1"), Offer(frozenset({(GPU, UUID)}), frozenset({(GPU, UUID)}))
    (family,) = cache.get((U0, U1, M, M7), offer)
    found = {labels.text: value for labels, value in family.samples}
    assert found == {
        f'{{gpu="0",UUID="{UUID}",node="node-1"}}': 1,
        '{gpu="1",UUID="GPU-1",node="node-1"}': 0,
        '{gpu="2",UUID="GPU-m",GPU_I_ID="7",node="node-1"}': 0,
    }
    assert cache.get((U0, U1, M, M7), Offer(offer.ids, offer.before))[0] is family
    assert cache.get((U0, U1, M, M7), UNKNOWN) == ()


class Answers:
    """A kubelet that answers with these, one after another: ids, or the reason of a failure."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked_at = []
        self.clock = Clock()
        self.began = self.clock.now
        self.reader = OfferReader(self.ask, UnmatchedReason.EMPTY, self.clock)

    def ask(self):
        self.asked_at.append(self.clock.now - self.began)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            raise SourceError(answer, f"it is {answer}")
        return frozenset(answer)

    def at(self, second):
        self.clock.now = self.began + second
        return self.reader.read()


A, B = frozenset({(GPU, "a")}), frozenset({(GPU, "b")})


def test_the_kubelet_is_asked_once_a_minute_and_the_answer_before_is_kept():
    kubelet = Answers(A, B)
    assert [kubelet.at(second) for second in (0, 1, 59)] == [Offer(A)] * 3
    assert kubelet.at(60) == Offer(B, A)
    assert kubelet.asked_at == [0, 60]


def test_an_answer_is_used_for_two_minutes_while_calls_fail_and_calls_become_fewer():
    kubelet = Answers(A, *["timeout"] * 5, A)
    kubelet.at(0)
    problem = (UnmatchedReason.EMPTY, "it is timeout")
    for second in range(60, 121, 10):
        assert kubelet.at(second) == Offer(A, None, problem)
    for second in range(130, 1601, 10):
        kubelet.at(second)
    assert kubelet.asked_at == [0, 60, 120, 240, 480, 960, 1560]
    assert kubelet.reader.read() == Offer(A)


def test_without_an_answer_nothing_is_known_and_why_is_said():
    kubelet = Answers("timeout")
    assert kubelet.at(0) == Offer(problem=(UnmatchedReason.EMPTY, "it is timeout"))


def test_a_kubelet_that_has_no_such_call_is_no_problem():
    kubelet = Answers("unimplemented")
    assert kubelet.at(0) == UNKNOWN


def test_nothing_is_known_in_a_collection_in_which_the_kubelet_is_down():
    kubelet = Answers(A)
    part = OfferInCollections(kubelet.reader, "node-1", NO_PATTERNS)
    for up, asked in ((False, []), (True, [0.0]), (False, [0.0])):
        part.read(CollectionCycle(health=[SourceHealth("kubelet", up, 0.0), SourceHealth("dcgm", True, 0.0)]))
        assert kubelet.asked_at == asked
    assert part.families((U0,), ()) == ()
    assert part.problems() == ()
