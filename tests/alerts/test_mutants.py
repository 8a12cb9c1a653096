"""A sample of the mutants of alerts: without its first comparison an alert fails a test. `make mutants` runs all."""

import pytest

from tests.alerts import mutants
from tests.alerts.mutants import alerts_by_name, chosen, is_known, mutants_of, survives
from tests.alerts.same_result import SAME_RESULT


@pytest.mark.parametrize("name", sorted(alerts_by_name()))
def test_every_alert_is_named_by_a_test_and_has_mutants(name):
    assert mutants.tests_of(name)
    assert len(list(mutants_of(alerts_by_name()[name]))) >= 2


def test_every_mutant_that_is_listed_as_having_the_same_result_exists():
    found = {(rule, what) for rule, what in SAME_RESULT}
    used = {
        (mutant.rule, what)
        for alert in alerts_by_name().values()
        for mutant in mutants_of(alert)
        for rule, what in found
        if mutant.rule == rule and mutant.what.startswith(what)
    }
    assert used == found
    assert all(is_known(mutant) is False for mutant in chosen((), sample=False))


@pytest.mark.slow
@pytest.mark.mutation
@pytest.mark.parametrize("mutant", chosen((), sample=True), ids=lambda each: each.rule)
def test_an_alert_without_its_first_comparison_makes_a_test_fail(mutant):
    assert not survives(mutant)
