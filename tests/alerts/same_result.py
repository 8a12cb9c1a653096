"""Mutants of alerts that no input can tell from the rule, and why; by alert and the start of what was changed."""

from collections.abc import Mapping

SAME_RESULT: Mapping[tuple[str, str], str] = {}
