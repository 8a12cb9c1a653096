"""Decoding of pages and lines: one object that cannot be read costs itself, whatever is wrong in it."""

import json

import pytest

from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.watching.api import ApiError
from exporter.cluster.kubernetes.watching.decode import ObjectCodec
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.gpu_names import GpuResources
from simulators import objects

PODS = object_kinds(GpuResources())[0].codec
MARK = "in-place-of-this"


def text_of(name, annotation="fine"):
    pod = objects.pod(name, "team-a")
    pod["metadata"] |= {"annotations": {"note": annotation}, "resourceVersion": "9"}
    return json.dumps(pod).encode()


def page_of(*items):
    return b'{"metadata":{"resourceVersion":"7","continue":"next"},"items":[%s]}' % b",".join(items)


def event_of(item, kind=b"MODIFIED"):
    return b'{"type":"%s","object":%s}' % (kind, item)


def broken(instead):
    return text_of("p1", MARK).replace(MARK.encode(), instead)


UNDECODABLE = [
    pytest.param(broken(b"\xff"), id="a byte that is not UTF-8"),
    pytest.param(broken(b"\\ud800"), id="half a surrogate pair"),
    pytest.param(broken(b"\\ud800").replace(b'"containers"', b'"contain\\ud800"'), id="half a surrogate pair in a key"),
    pytest.param(text_of("p1", MARK).replace(b'"in-place-of-this"', b"7"), id="a number in place of a text"),
]


@pytest.mark.parametrize("item", UNDECODABLE)
def test_a_pod_that_cannot_be_decoded_costs_itself_and_not_its_page(item):
    page = PODS.page(page_of(text_of("p0"), item, text_of("p2")))
    assert set(page.records) == {"team-a/p0", "team-a/p2"}
    assert [problem.split(": ")[0] for problem in page.malformed] == ["team-a/p1"]
    assert (page.resource_version, page.continue_token) == ("7", "next")


@pytest.mark.parametrize("item", UNDECODABLE)
def test_a_change_of_a_pod_that_cannot_be_decoded_ends_its_record_and_not_the_watch(item):
    change = PODS.change(event_of(item))
    assert (change.type, change.key, change.record, change.resource_version) == ("malformed", "team-a/p1", None, "9")
    assert change.problem.startswith("team-a/p1: ")


@pytest.mark.parametrize("item", UNDECODABLE)
def test_the_end_of_a_pod_that_cannot_be_decoded_is_understood(item):
    change = PODS.change(event_of(item, b"DELETED"))
    assert (change.type, change.key, change.record) == ("object", "team-a/p1", None)


def test_a_control_character_costs_nothing():
    page = PODS.page(page_of(broken(b"\x01"), text_of("p2")))
    assert set(page.records) == {"team-a/p1", "team-a/p2"}
    assert page.malformed == []
    assert PODS.change(event_of(broken(b"\x01"))).record is not None


def test_a_name_that_cannot_be_read_can_be_logged():
    page = PODS.page(page_of(text_of("p0"), text_of("p1").replace(b'"p1"', b'"p\\ud800"')))
    assert set(page.records) == {"team-a/p0"}
    assert page.malformed[0].startswith("team-a/p\\ud800: ")
    assert page.malformed[0].encode()


def test_a_defect_in_the_conversion_costs_one_object():
    def convert(pod: wire.WirePod):
        if pod.metadata.name == "p1":
            raise KeyError("defect")

    codec = ObjectCodec(wire.WirePod, convert)
    assert codec.page(page_of(text_of("p0"), text_of("p1"))).malformed == ["team-a/p1: KeyError('defect')"]
    assert codec.change(event_of(text_of("p1"))).problem == "team-a/p1: KeyError('defect')"


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"", b"7", b'{"items":[]}', page_of(text_of("p0"))[:-1], page_of(b"[" * 100_000 + b"]" * 100_000)],
)
def test_what_is_no_list_is_an_error_of_the_api(body):
    with pytest.raises(ApiError) as caught:
        PODS.page(body)
    assert caught.value.reason == "bad_response"


@pytest.mark.parametrize(
    "line", [b"<html>", b"7", b'{"type":7,"object":{}}', event_of(b"[" * 100_000 + b"]" * 100_000)]
)
def test_what_is_no_event_is_an_error_of_the_api(line):
    with pytest.raises(ApiError) as caught:
        PODS.change(line)
    assert caught.value.reason == "bad_response"
