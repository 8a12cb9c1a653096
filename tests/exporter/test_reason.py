"""Reasons are closed sets of label values, each with one line on meaning and remedy, and are sent as text."""

import importlib
import pkgutil
import re
from pathlib import Path

import msgspec
import pytest

import exporter
from exporter.node.devices.readings.readings import Rejection, RejectionReason
from exporter.reason import Reason


def subclasses():
    for module in pkgutil.walk_packages(exporter.__path__, "exporter."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return Reason.__subclasses__()


REASONS = subclasses()
MEMBERS = [member for reasons in REASONS for member in reasons]


def test_every_set_of_reasons_is_found():
    assert len(REASONS) >= 10
    assert len(MEMBERS) > 90


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: f"{type(member).__name__}.{member.name}")
def test_a_member_is_a_label_value_with_one_line_on_meaning_and_remedy(member):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", member)
    assert member.name.lower() == member
    for line in (member.meaning, member.remedy):
        assert re.fullmatch(r"(lib)?[A-Za-z][^\n]+\.", line), line


def test_a_reason_travels_as_text_and_comes_back_as_a_member():
    sent = msgspec.msgpack.encode(Rejection(150, RejectionReason.BLANK, 2))
    assert msgspec.msgpack.decode(sent) == [150, "blank", 2]
    assert msgspec.msgpack.decode(sent, type=Rejection).reason is RejectionReason.BLANK


def test_a_value_finds_its_member():
    assert RejectionReason.of("stale") is RejectionReason.STALE
    with pytest.raises(KeyError):
        RejectionReason.of("nonsense")


def test_every_error_is_raised_with_a_member_and_not_with_a_text():
    for path in Path("exporter").rglob("*.py"):
        assert not re.search(r"""(SourceError|ApiError)\(\s*["']""", path.read_text()), path
