"""Leaving any clause out of the low-utilisation alert, or of a series it rests on, makes a case of the matrix fail."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from alerts.rule import Group
from tests.alerts.fleet import FLAVOURS
from tests.alerts.matrix import (
    ALERT,
    STOCK,
    claimed_by_two_nodes,
    exporter_is_no_holder,
    matrix,
    same_names_in_two_clusters,
    threshold_scene,
)
from tests.alerts.mutation import JUDGING, Chain, Mutant, judging_groups, mutants
from tests.alerts.promtool import Scene, run, write_rules, write_test
from tests.promql import selectors

ALERT_LEVEL = frozenset(
    {ALERT, "pod:gpu_low_utilization_threshold:ratio", "pod:gpu_start_timestamp:seconds", "pod:gpu_running:info"}
)
SAME_RESULT: Mapping[tuple[str, str], str] = {}
"""Mutants that no input tells from the rule, and why; by rule and the start of what was left out."""

MOMENTS = frozenset({25, 34, 36, 38, 40, 43, 46.5, 50, 56, 60, 62, 66, 75, 80, 86.5})
"""Of the minutes that the rows ask about: those that tell mutants apart."""

DEVICE_ROWS = ("02", "10", "11", "12", "13", "14", "18", "19", "21", "24-lost", "26", "27", "29", "31")
LIMIT_ROWS = ("02", "15", "16", "17", "21", "22", "23", "25", "26", "30")
SPELLING_ROWS = ("02", "11-mig", "12", "18", "19")


@dataclass(frozen=True)
class Stage:
    """Cases that some mutants are shown to; `constants`: with the recorded thresholds of our own."""

    name: str
    scene: Callable[[], Scene]
    until: float = 100
    constants: bool = True


def _free_gpus() -> Scene:
    scene = Scene()
    for flavour in FLAVOURS:
        exporter_is_no_holder(scene, flavour)
    for flavour in FLAVOURS[:2]:
        claimed_by_two_nodes(scene, flavour)
        same_names_in_two_clusters(scene, flavour)
    return scene


LIMITS = Stage("limits and states", lambda: matrix("own-false", only=LIMIT_ROWS), 40)
ALL_ROWS = Stage("every row", lambda: matrix("own-true"))
DEVICES = Stage("devices and holders", lambda: matrix("own-false", only=DEVICE_ROWS), 40)
SPELLINGS = Stage("every spelling", lambda: matrix(*STOCK, only=SPELLING_ROWS), 40)
STATIC = Stage(
    "targets without labels", lambda: matrix("own-static", only=("02", "18", "29-holder", "29-two-exporters-d")), 40
)
FREE = Stage("free GPUs and twins", _free_gpus)
UNSET = Stage("no constants", lambda: threshold_scene({}), constants=False)
SET = Stage("other constants", lambda: threshold_scene({ALERT: (0.1,), "GPUPodIdle": (0.02,)}), constants=False)


def _killed(folder: Path, stage: Stage, chains: list[Chain]) -> set[int]:
    """Numbers of the chains that give another answer than the rules, or none because they fail to evaluate.

    promtool stops at the first moment at which a rule fails, so the others are shown again without it.
    """
    killed: set[int] = set()
    while left := [chain for chain in chains if chain.number not in killed]:
        complaint = _complaint(folder, stage, left)
        if not complaint:
            break
        failed = {int(number) for number in re.findall(r"rule: \S+_mutant(\d+), time", complaint)}
        if not failed:
            return killed | {int(number) for number in re.findall(r"expr: .*?_mutant(\d+)", complaint)}
        killed |= failed
    return killed


def _complaint(folder: Path, stage: Stage, chains: list[Chain]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    groups = judging_groups() if stage.constants else judging_groups()[1:]
    groups += (Group("mutants", tuple(rule for chain in chains for rule in chain.rules)),)
    scene = stage.scene()
    asked = [question for question in scene.asked() if question[1] <= stage.until and question[1] in MOMENTS]
    scene.firing = {}
    scene.expectations = [
        (changed, minute, samples)
        for chain in chains
        for expression, minute, samples in asked
        if (changed := chain.rename(expression)) != expression
    ]
    path = write_test(folder / "test.json", write_rules(folder, groups), [scene], groups)
    return run(path)[path]


def test_the_mutated_rules_are_all_the_alert_rests_on():
    rules = {rule.name: rule for group in judging_groups() for rule in group.rules}
    reached, queue = set(), [ALERT]
    while queue:
        name = queue.pop()
        if name in rules and name not in reached:
            reached.add(name)
            queue += [selected for selected, _ in selectors(rules[name].expr)]
    assert reached == JUDGING


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "stages"),
    [
        (lambda rule: rule in ALERT_LEVEL, (LIMITS, UNSET, SET, FREE, ALL_ROWS)),
        (lambda rule: rule not in ALERT_LEVEL, (SPELLINGS, DEVICES, STATIC, FREE)),
    ],
    ids=["judgement", "devices and holders"],
)
def test_no_clause_can_be_left_out_unnoticed(tmp_path, chosen, stages):
    alive = {n: mutant for n, mutant in enumerate(mutants()) if chosen(mutant.rule) and not _same_result(mutant)}
    assert len(alive) > 30
    for stage in stages:
        chains = [mutant.chain(number) for number, mutant in alive.items()]
        for number in _killed(tmp_path / stage.name.replace(" ", "-"), stage, chains):
            del alive[number]
    assert [f"{mutant.rule}: {mutant.what}" for mutant in alive.values()] == []


@pytest.mark.parametrize("rule", [ALERT, "namespace_pod_gpu:gpugauge_holder:info"])
def test_a_rule_that_is_not_mutated_passes_every_stage(tmp_path, rule):
    """Otherwise every mutant would count as noticed."""
    true_rule = next(found for group in judging_groups() for found in group.rules if found.name == rule)
    chain = Mutant(rule, "nothing", true_rule).chain(0)
    for stage in (LIMITS, SPELLINGS, DEVICES, STATIC, FREE, UNSET, SET, ALL_ROWS):
        assert _complaint(tmp_path / stage.name.replace(" ", "-"), stage, [chain]) == "", stage.name


def _same_result(mutant: Mutant) -> bool:
    return any(mutant.rule == rule and mutant.what.startswith(start) for rule, start in SAME_RESULT)
