"""Makes the mutant of GPUGAUGE_MUTANT take the place of its rule, for `tests/alerts/mutants.py`."""

import os

from tests.alerts.mutants import VARIABLE, by_key, put_in_place


def pytest_configure() -> None:
    if key := os.environ.get(VARIABLE):
        put_in_place(by_key(key))
