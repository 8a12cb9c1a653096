"""The words of docs/glossary.md in identifiers, HELP texts and log messages, and one meaning for every class name."""

import ast
import re
import subprocess
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from exporter.commands.metrics import sections

ROOT = Path(__file__).parents[1]
FILES = [
    Path(name)
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    if "kubelet_api" not in name and (ROOT / name).exists()
]  # fmt: skip
PRODUCT = [path for path in FILES if path.parts[0] != "tests"]

BANNED = {
    "board", "boards", "card", "cards", "holder", "holders", "held", "leaf", "leaves", "picture", "pictures", "standin",
    "sampler", "samplers", "sentence", "sentences", "goodbye", "pass", "passes",
    "colour", "colours", "coloured", "behaviour", "behaviours", "neighbour", "neighbours", "neighbouring", "normalise",
    "normalised", "normaliser", "normalising", "utilisation", "labelled", "labelling", "licence", "signalled",
    "initialise", "initialised", "recognise", "recognised", "serialise", "serialised", "organise", "organised",
    "summarise", "favour", "honour", "centre", "grey", "catalogue", "analyse", "cancelled", "minimise", "maximise",
}  # fmt: skip
"""Words as they appear in lower case between the parts of an identifier, or as two parts that follow each other."""
QUOTED = {
    "nvmlDeviceGetBoardId", "nvmlDeviceGetBoardPartNumber", "honor_labels", "cancelled", "PROFILING_MULTI_PASS",
    "BOARD_LIMIT_VIOLATION",
}  # fmt: skip
"""Names that are not ours."""

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "report", "clear"}


def words(name):
    """Return the parts of a name, and each two parts that follow each other as one word (StandIn: standin)."""
    parts = [part.lower() for part in WORD.findall(name)]
    return {*parts, *map("".join, pairwise(parts))}


def identifiers(tree):
    """Every name that the module gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def log_texts(tree):
    """The literal parts of what is passed to a logger, and of the messages of errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in LOG_METHODS or name.endswith("Error"):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value, part.lineno


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_identifier_uses_a_word_that_the_glossary_replaces(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = [f"{path}:{line} {name}" for name, line in identifiers(tree) if words(name) & BANNED and name not in QUOTED]
    assert found == []


@pytest.mark.parametrize(
    "path", [path for path in PRODUCT if path.parts[0] in {"exporter", "demo", "simulators"}], ids=str
)
def test_no_log_message_uses_a_word_that_the_glossary_replaces(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert [f"{path}:{line} {text}" for text, line in log_texts(tree) if words(text) & BANNED] == []


def test_no_file_is_named_with_a_word_that_the_glossary_replaces():
    assert [str(path) for path in FILES if words(path.stem) & BANNED] == []


def test_no_help_text_of_ours_uses_a_word_that_the_glossary_replaces():
    texts = {metric.name: metric.help for section in sections() for metric in section.metrics}
    ours = {name: text for name, text in texts.items() if name.startswith("gpugauge_")}
    assert len(ours) > 30
    assert {name: text for name, text in ours.items() if words(text) & BANNED} == {}


def test_a_banned_word_is_found_in_any_spelling_of_an_identifier():
    assert words("BoardReader") & BANNED
    assert words("_HELD_BY") & BANNED
    assert words("idle_cards") & BANNED
    assert words("StandInServer") & BANNED
    assert words("last_pass") & BANNED
    assert not words("dashboard") & BANNED
    assert not words("passthrough_passed") & BANNED


def test_one_class_name_means_one_thing():
    """Across the product; a capitalized alias counts as a class."""
    places = defaultdict(set)
    for path in PRODUCT:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(path))
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name[:1].isupper() and not name.isupper():
                    places[name].add(str(path))
    assert {name: sorted(found) for name, found in places.items() if len(found) > 1} == {}
