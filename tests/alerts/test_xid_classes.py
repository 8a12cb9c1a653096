"""The tables of XIDs and clock events: every code has one class, and alerts and exporter agree with them."""

import re
from itertools import chain
from pathlib import Path

import pytest

from alerts.alerting import thermal, xids
from alerts.alerting.throttles import THROTTLES, Throttle
from alerts.alerting.xid_classes import XID_CLASSES, XidClass, class_of
from exporter.node.devices.computed.clock_events import REASONS
from exporter.node.devices.computed.clock_events import THROTTLES as EXPOSED
from exporter.node.devices.readings.xids import CRITICAL, TEXTS
from tests.promql import selectors

BY_CLASS = {
    XidClass.CRITICAL: xids.CRITICAL,
    XidClass.WARNING: xids.WARNING,
    XidClass.APPLICATION: xids.APPLICATION,
}


def test_no_code_is_in_two_classes():
    codes = list(chain(*XID_CLASSES.values()))
    assert len(codes) == len(set(codes))


def _matches(expression, code):
    """Whether the first selector of the expression selects a series with this code."""
    inside = re.search(r"gpugauge_xid_last_timestamp_seconds\{(.*?)\}", expression, re.DOTALL)[1]
    found = re.findall(r'xid(=~|!~)"([^"]*)"', inside)
    return bool(found) and all((re.fullmatch(pattern, str(code)) is not None) == (op == "=~") for op, pattern in found)


@pytest.mark.parametrize("code", range(1, 260))
def test_exactly_the_alert_of_its_class_selects_a_code(code):
    """So every code that there is, known or not, is in one class."""
    selected = [name for name, expression in BY_CLASS.items() if _matches(expression, code)]
    assert selected == ([] if class_of(code) is XidClass.RECORD else [class_of(code)])


def test_no_xid_is_no_class_of_xid():
    assert not any(_matches(expression, 0) for expression in BY_CLASS.values())


def test_the_table_of_the_runbook_is_that_of_the_rules():
    text = (Path(__file__).parents[2] / "docs/runbook.md").read_text()
    for name, codes in XID_CLASSES.items():
        row = re.search(rf"^\| {name} \| ([\d ]+)", text, re.MULTILINE)
        assert [int(code) for code in row[1].split()] == list(codes)


def test_codes_that_are_in_no_class_are_a_warning():
    assert class_of(12345) is XidClass.WARNING


def test_the_counters_that_begin_at_0_are_those_of_critical_codes():
    assert set(CRITICAL) <= set(XID_CLASSES[XidClass.CRITICAL])


def test_codes_that_the_exporter_has_no_words_for_are_few():
    """142, 171 and 172 are in the catalog without a stable meaning."""
    assert set(chain(*XID_CLASSES.values())) - set(TEXTS) == {136, 142, 171, 172}


def test_every_bit_has_one_name_which_is_that_of_the_exporter():
    assert {name: 1 << bit for bit, (name, _) in THROTTLES.items()} == {str(each): REASONS[each] for each in REASONS}


def test_what_the_exporter_exposes_is_a_sign_of_something_and_an_alert_reads_it():
    signs = {name for name, throttle in THROTTLES.values() if throttle is not Throttle.NOTHING}
    assert signs == set(EXPOSED)
    read = set()
    for expression in (thermal.HEAT, thermal.POWER_BRAKE, thermal.SLOWDOWN, thermal.WARMTH):
        assert {name for name, _ in selectors(expression)} >= {"gpugauge_clock_event"}
        read |= set(re.findall(r'reason="(\w+)"', expression))
    assert read == {
        name for name, throttle in THROTTLES.values() if throttle not in (Throttle.NOTHING, Throttle.POWER_LIMIT)
    }
