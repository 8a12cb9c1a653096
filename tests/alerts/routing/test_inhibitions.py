"""Inhibitions: by name, with labels that are not empty, and never of hardware by something else."""

import pytest

from alerts import GROUPS
from alerts.routing.inhibitions import INHIBITIONS, MAY_BE_EMPTY
from alerts.rules.rule import Alert

AREAS = {rule.name: rule.area for group in GROUPS for rule in group.rules if isinstance(rule, Alert)}
FOREIGN = {"KubeNodeNotReady", "KubeNodeUnreachable"}


@pytest.mark.parametrize("inhibition", INHIBITIONS, ids=lambda each: each.sources[0])
def test_it_names_alerts_that_exist_and_none_on_both_sides(inhibition):
    assert set(inhibition.sources) <= AREAS.keys() | FOREIGN
    assert set(inhibition.targets) <= AREAS.keys()
    assert not set(inhibition.sources) & set(inhibition.targets), "an alert on both sides is never suppressed"


@pytest.mark.parametrize("inhibition", INHIBITIONS, ids=lambda each: each.sources[0])
def test_labels_that_must_be_equal_must_not_be_empty(inhibition):
    for names in (inhibition.sources, inhibition.targets):
        conditions = {str(matcher) for matcher in inhibition.matchers(names)}
        filled = {label for label in inhibition.equal if f'{label}=~".+"' in conditions}
        assert filled == set(inhibition.equal) - {MAY_BE_EMPTY}


def test_hardware_is_suppressed_by_nothing_but_hardware():
    for inhibition in INHIBITIONS:
        if any(AREAS[target] == "hardware" for target in inhibition.targets):
            assert {AREAS.get(source) for source in inhibition.sources} == {"hardware"}
