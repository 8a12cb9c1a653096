"""Leaving any clause out of GPUPodLowUtilization, or of a series it depends on, makes a case of the matrix fail."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from alerts import ADAPTERS
from alerts.recorded import thresholds
from alerts.rules.rule import Group
from tests.alerts.fleet import FLAVORS
from tests.alerts.matrix import (
    allocated_on_two_nodes,
    exporter_has_no_allocation,
    labels_missing,
    matrix,
    same_names_in_two_clusters,
    threshold_fixture,
    watchers_disagree,
)
from tests.alerts.mutation import RULES_OF_ALERT, Chain, Mutant, groups_of_alert, mutants
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test
from tests.alerts.rows import ALERT, STOCK, UNKNOWN
from tests.promql import selectors

pytestmark = pytest.mark.mutation

ALERT_LEVEL = frozenset(
    {
        ALERT,
        "pod:gpu_low_utilization_threshold:ratio",
        "pod:gpu_exempt:info",
        "namespace:gpu_exempt:info",
        "pod:gpu_running:seconds",
        "pod:gpu_judged:info",
    }
)
SAME_RESULT: Mapping[tuple[str, str], str] = {
    (
        "pod:gpu_workload:info",
        "no unless",
    ): "the arm before has these pods: the clause spares the work of relabeling them",
}
"""Mutants with the same result as the rule for every input, and why; by rule and the start of what was left out."""

UNNOTICED = (Path(__file__).parent / "unnoticed_mutants.txt").read_text(encoding="utf-8").splitlines()
"""Mutants that no case tells from the rules yet, as rule and change: gaps of the tests, which must not become more."""

MOMENTS = frozenset({25, 34, 36, 38, 40, 43, 46.5, 50, 56, 60, 62, 66, 75, 80, 86.5})
"""The minutes at which mutants differ from the rules, among those at which the rows expect something."""

DEVICE_ROWS = ("02", "10", "11", "12", "13", "14", "18", "19", "21", "24-lost", "26", "27", "29", "31")
LIMIT_ROWS = ("02", "15", "16", "17", "21", "22", "23", "25", "26", "30")
SPELLING_ROWS = ("02", "11-mig", "12", "18", "19")


@dataclass(frozen=True)
class CaseSet:
    """Cases that some mutants are evaluated with; `constants`: with the generated thresholds."""

    name: str
    fixture: Callable[[], RuleFixture]
    until: float = 100
    constants: bool = True


def _unallocated_gpus() -> RuleFixture:
    fixture = RuleFixture()
    for flavor in FLAVORS:
        exporter_has_no_allocation(fixture, flavor)
    for flavor in FLAVORS[:2]:
        allocated_on_two_nodes(fixture, flavor)
        labels_missing(fixture, flavor)
        watchers_disagree(fixture, flavor)
        same_names_in_two_clusters(fixture, flavor)
    return fixture


LIMITS = CaseSet("limits and states", lambda: matrix("own-false", only=LIMIT_ROWS), 40)
ALL_ROWS = CaseSet("every row", lambda: matrix("own-true"))
DEVICES = CaseSet("devices and pods", lambda: matrix("own-false", only=DEVICE_ROWS), 40)
SPELLINGS = CaseSet("every spelling", lambda: matrix(*STOCK, only=SPELLING_ROWS), 40)
STATIC = CaseSet(
    "targets without labels", lambda: matrix("own-static", only=("02", "18", "29-unlisted", "29-two-exporters-d")), 40
)
UNALLOCATED = CaseSet("unallocated GPUs, and pods of the same name", _unallocated_gpus)
UNSET = CaseSet("no constants", lambda: threshold_fixture({}), constants=False)
SET = CaseSet("other constants", lambda: threshold_fixture({ALERT: (0.1,), UNKNOWN: (0.02,)}), constants=False)


def _killed(folder: Path, cases: CaseSet, chains: list[Chain]) -> set[int]:
    """Numbers of the chains whose result differs from that of the rules, or that fail to evaluate.

    promtool stops at the first moment at which a rule fails, so the others are evaluated again without it.
    """
    killed: set[int] = set()
    while left := [chain for chain in chains if chain.number not in killed]:
        report = _report(folder, cases, left)
        if not report:
            break
        failed = {int(number) for number in re.findall(r"rule: \S+_mutant(\d+), time", report)}
        if not failed:
            return killed | {int(number) for number in re.findall(r"expr: .*?_mutant(\d+)", report)}
        killed |= failed
    return killed


def _report(folder: Path, cases: CaseSet, chains: list[Chain]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    constants = (thresholds.GROUP,) if cases.constants else ()
    groups = (*constants, thresholds.IN_FORCE, *ADAPTERS, *groups_of_alert())
    groups += (Group("mutants", tuple(rule for chain in chains for rule in chain.rules)),)
    fixture = cases.fixture()
    asked = [question for question in fixture.asked() if question[1] <= cases.until and question[1] in MOMENTS]
    fixture.firing = {}
    fixture.expectations = [
        (changed, minute, samples)
        for chain in chains
        for expression, minute, samples in asked
        if (changed := chain.rename(expression)) != expression
    ]
    path = write_test(folder / "test.json", write_rules(folder, groups), [fixture], groups)
    return run(path)[path]


def test_the_mutated_rules_are_all_that_the_alert_depends_on():
    rules = {rule.name: rule for group in groups_of_alert() for rule in group.rules}
    reached, queue = set(), [ALERT]
    while queue:
        name = queue.pop()
        if name in rules and name not in reached:
            reached.add(name)
            queue += [selected for selected, _ in selectors(rules[name].expr)]
    assert reached == RULES_OF_ALERT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "case_sets"),
    [
        (lambda rule: rule in ALERT_LEVEL, (LIMITS, UNSET, SET, UNALLOCATED, ALL_ROWS)),
        (lambda rule: rule not in ALERT_LEVEL, (SPELLINGS, DEVICES, STATIC, UNALLOCATED)),
    ],
    ids=["alert", "devices and pods"],
)
def test_no_clause_can_be_left_out_without_a_failing_case(tmp_path, chosen, case_sets):
    alive = {n: mutant for n, mutant in enumerate(mutants()) if chosen(mutant.rule) and not _same_result(mutant)}
    assert len(alive) > 20
    for cases in case_sets:
        chains = [mutant.chain(number) for number, mutant in alive.items()]
        for number in _killed(tmp_path / cases.name.replace(" ", "-"), cases, chains):
            del alive[number]
    unnoticed = {f"{mutant.rule}: {mutant.what}" for mutant in alive.values()}
    assert unnoticed == {line for line in UNNOTICED if chosen(line.partition(": ")[0])}


@pytest.mark.parametrize("rule", [ALERT, "pod:gpu_workload:info"])
def test_a_rule_that_is_not_mutated_gives_the_expected_results_in_every_case_set(tmp_path, rule):
    """Otherwise every mutant would count as found."""
    original = next(found for group in groups_of_alert() for found in group.rules if found.name == rule)
    chain = Mutant(rule, "nothing", original).chain(0)
    for cases in (LIMITS, SPELLINGS, DEVICES, STATIC, UNALLOCATED, UNSET, SET, ALL_ROWS):
        assert _report(tmp_path / cases.name.replace(" ", "-"), cases, [chain]) == "", cases.name


def _same_result(mutant: Mutant) -> bool:
    return any(mutant.rule == rule and mutant.what.startswith(start) for rule, start in SAME_RESULT)
