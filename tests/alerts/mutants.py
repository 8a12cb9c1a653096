"""`make mutants`: leaves out every clause of every alert and weakens every comparison; the tests must fail each time.

`python -m tests.alerts.mutants [ALERT...]` runs the tests of an alert, those whose file names it, once for each mutant,
and fails when one passes that `same_result.py` does not list. `--sample` takes one mutant of each alert of SAMPLE, as
the suite does.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import promql_parser as pp

import alerts
from alerts.rules.rule import Alert, Group, Rule
from tests.alerts.mutation import Mutant, changes
from tests.alerts.same_result import SAME_RESULT

VARIABLE = "GPUGAUGE_MUTANT"
TESTS = Path(__file__).parent
OWN_CHECK = "GPUPodLowUtilization"
"""`test_mutations.py` has a check of its own for this alert, and for the series that it reads."""
OTHERS = {"test_mutations.py", "test_mutants.py", "test_generated.py"}
"""Test files that say nothing about what an alert does; the last fails with every mutant, since files differ then."""
SAMPLE = (
    "GPUPodIdle",
    "GPUClusterSaturated",
    "GPUFleetBlind",
    "GPUExporterStale",
    "GPUNodeDevicesUnhealthy",
    "GPURackThrottled",
    "GPUThermalThrottling",
    "GPURuleEvaluationFailing",
)
"""Alerts of which the suite tries one mutant each: a person is woken, or a team told that its work is at fault."""
CORES = 2
COMPARISONS = ("no <", "no >", "no ==")
WEAKER = {">": ">=", "<": "<=", ">=": ">", "<=": "<"}


def alerts_by_name() -> dict[str, Alert]:
    """Every alert but the watchdog, which has no condition, and the one with a check of its own."""
    rules = (rule for group in alerts.GROUPS for rule in group.rules)
    found = {rule.name: rule for rule in rules if isinstance(rule, Alert)}
    return {name: alert for name, alert in found.items() if alert.for_ and name != OWN_CHECK}


def mutants_of(alert: Alert) -> Iterator[Mutant]:
    """Every way of leaving out a clause, weakening a comparison, or dropping `for` or `keep_firing_for`."""
    root = pp.parse(alert.expr)
    seen = {str(root)}
    for what, changed in (*changes(root), *_weaker(root)):
        if changed not in seen:
            seen.add(changed)
            yield Mutant(alert.name, what, dataclasses.replace(alert, expr=changed))
    yield Mutant(alert.name, "no for", dataclasses.replace(alert, for_="0s"))
    if alert.keep_firing_for:
        yield Mutant(alert.name, "no keep_firing_for", dataclasses.replace(alert, keep_firing_for=""))


def _weaker(root: pp.Expr) -> Iterator[tuple[str, str]]:
    """Comparisons with and without equality exchanged."""
    text = str(root)
    for sign, other in WEAKER.items():
        place = text.find(f" {sign} ")
        while place >= 0:
            changed = f"{text[:place]} {other} {text[place + len(sign) + 2 :]}"
            yield f"{other} for {sign} in {text[max(0, place - 60) : place + 60]}", changed
            place = text.find(f" {sign} ", place + 1)


def key_of(mutant: Mutant) -> str:
    """The alert and a number that stays the same as long as the mutant does."""
    return f"{mutant.rule}:{hashlib.sha256(mutant.what.encode()).hexdigest()[:12]}"


def by_key(key: str) -> Mutant:
    """The mutant with this key."""
    name = key.partition(":")[0]
    return next(mutant for mutant in mutants_of(alerts_by_name()[name]) if key_of(mutant) == key)


def put_in_place(mutant: Mutant) -> None:
    """Replace the rule in every group that is loaded; for a process of its own."""
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "alerts"]:
        _replace(module, mutant)


def _replace(module: ModuleType, mutant: Mutant) -> None:
    for name, value in vars(module).items():
        if isinstance(value, Group):
            setattr(module, name, _mutated(value, mutant))
        elif isinstance(value, tuple) and value and all(isinstance(each, Group) for each in value):
            setattr(module, name, tuple(_mutated(each, mutant) for each in value))


def _mutated(group: Group, mutant: Mutant) -> Group:
    def rule(each: Rule) -> Rule:
        return mutant.mutated if isinstance(each, Alert) and each.name == mutant.rule else each

    return dataclasses.replace(group, rules=tuple(map(rule, group.rules)))


def tests_of(alert: str) -> list[str]:
    """The test files that name the alert, the shortest first: it is the one about that subject."""
    files = [path for path in TESTS.glob("test_*.py") if path.name not in OTHERS]
    named = [path for path in files if alert in path.read_text(encoding="utf-8")]
    return [str(path) for path in sorted(named, key=lambda path: path.stat().st_size)]


def survives(mutant: Mutant) -> bool:
    """Whether every test passes with it."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", "-m", "not mutation"]
    done = subprocess.run(
        [*command, *tests_of(mutant.rule)],
        env={**os.environ, VARIABLE: key_of(mutant)},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def is_known(mutant: Mutant) -> bool:
    """Whether it is listed as having the same result as the rule."""
    return any(mutant.rule == rule and mutant.what.startswith(what) for rule, what in SAME_RESULT)


def chosen(names: Sequence[str], *, sample: bool) -> list[Mutant]:
    """The mutants of these alerts, or of all; with `sample` those of SAMPLE without their first comparison."""
    found = []
    for name, alert in alerts_by_name().items():
        if (names and name not in names) or (sample and name not in SAMPLE):
            continue
        mutants = [mutant for mutant in mutants_of(alert) if not is_known(mutant)]
        found += [next(each for each in mutants if each.what.startswith(COMPARISONS))] if sample else mutants
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.alerts.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("alerts", nargs="*", metavar="ALERT", help="only these")
    parser.add_argument("--sample", action="store_true", help="one mutant of each alert")
    options = parser.parse_args(arguments)
    mutants = chosen(options.alerts, sample=options.sample)
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        alive = [mutant for mutant, lives in zip(mutants, pool.map(survives, mutants), strict=True) if lives]
    for mutant in alive:
        print(f"{mutant.rule}: {mutant.what}")
    print(f"{len(mutants)} mutants, {len(alive)} of which no test notices")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main())
