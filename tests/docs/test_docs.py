"""What the written documents claim about links, verbs, flags, variables and queries holds."""

import re
import shlex
from pathlib import Path

import promql_parser
import pytest

from exporter import cli

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if not any(part[0] == "." for part in path.relative_to(ROOT).parts[:-1])
)
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
SWITCHING = (ROOT / "docs/switching.md").read_text(encoding="utf-8")

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def without_code(text):
    return SPAN.sub("", FENCE.sub("", text))


def code(text):
    """The lines of fenced blocks that are no data or queries, and what stands between backticks."""
    blocks = [body for language, body in FENCE.findall(text) if language in {"", "sh", "bash"}]
    return [*"".join(blocks).splitlines(), *SPAN.findall(FENCE.sub("", text))]


def anchors(path):
    """The names that headings have as targets of links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text):
    """The arguments of each `gpugauge` command line."""
    for line in code(text):
        words = shlex.split(line, comments=True) if re.search(r"(^|/)gpugauge(\s|$)", line) else []
        places = [place for place, word in enumerate(words) if word.rpartition("/")[2] == "gpugauge"]
        if places:
            yield words[places[0] + 1 :]


def options(command):
    return set(cli.PARSERS[command](cli.Environment({}))._option_string_actions)


@EVERY_PAGE
def test_every_relative_link_leads_to_a_file_and_its_heading(page):
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        assert not heading or heading in anchors(path), target


def test_no_link_goes_unseen():
    text = "a [b `c`](d.md#e) and `[f](g)`\n```sh\n[h](i)\n```\n"
    assert LINK.findall(without_code(text)) == ["d.md#e"]
    assert "license" not in anchors(ROOT / "README.md")


def test_the_index_lists_every_decision_by_its_title():
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    listed = [(int(number), name, title) for number, title, name in re.findall(r"\| (\d+) \| \[(.+)\]\((.+)\)", index)]
    titles = [re.match(r"# (\d+)\. (.+)\n", path.read_text(encoding="utf-8")).groups() for path in DECISIONS]
    numbered = zip(titles, DECISIONS, strict=True)
    assert listed == [(int(number), path.name, title) for (number, title), path in numbered]
    assert [number for number, _, _ in listed] == list(range(1, len(DECISIONS) + 1))
    assert [path.name[:4] for path in DECISIONS] == [f"{number:04}" for number, _, _ in listed]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda path: path.name[:4])
def test_a_decision_fits_on_a_page_and_says_why_what_follows_and_what_else_there_was(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## Context",
        "## Decision",
        "## Consequences",
        "## Rejected",
    ]
    assert len(lines) <= 45


def test_every_verb_that_a_document_names_is_in_the_makefile_and_every_verb_is_explained():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split())
    assert verbs <= set(re.findall(r"^([a-z0-9]+):", makefile, re.MULTILINE))
    named = {
        (name, verb)
        for name, page in zip(NAMES, PAGES, strict=True)
        for line in code(page.read_text(encoding="utf-8"))
        for verb in re.findall(r"(?:^|&& )make ([a-z0-9_-]+)", line)
    }
    assert {verb for _, verb in named} <= verbs, named
    assert {verb for name, verb in named if name == "CONTRIBUTING.md"} == verbs


@EVERY_PAGE
def test_every_command_line_that_a_document_shows_is_understood(page):
    for arguments in commands(page.read_text(encoding="utf-8")):
        assert cli.parse(arguments, {}).command in cli.COMMANDS


def test_command_lines_are_found():
    assert [line[:1] for line in commands("```sh\n.venv/bin/gpugauge cluster --kubeconfig FILE  # x\n```\n")] == [
        ["cluster"]
    ]
    assert list(commands("`gpugauge_build_info` `docker build -t gpugauge-x`")) == []


def test_every_flag_in_switching_exists_and_every_flag_of_the_exporter_is_there():
    spans = " ".join(code(SWITCHING))
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", spans))
    assert named - options("node") == set()
    mentioned = {flag for flag in options("node") if flag.startswith("--")} - {"--help", "--version"}
    assert mentioned - named == set()


def test_flags_without_effect_are_listed_as_such_and_no_others():
    (paragraph,) = re.findall(r"^Accepted without effect.*?\n\n", SWITCHING, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(--[a-z-]+)`", paragraph)) == {*cli.WITHOUT_EFFECT, *cli.WITHOUT_EFFECT_SWITCHES}


def test_every_variable_in_the_table_is_read():
    read = "".join((ROOT / "exporter" / name).read_text(encoding="utf-8") for name in ("cli.py", "config.py"))
    rows = re.findall(r"^\| `--.*$", SWITCHING, re.MULTILINE)
    variables = {name for row in rows for name in re.findall(r"`([A-Z][A-Z_]+)`", row.rpartition(" | ")[2])}
    assert len(variables) > len(rows)
    assert {name for name in variables if f'"{name}"' not in read} == set()
    known = set(re.findall(r'"((?:DCGM_|NVIDIA_)[A-Z_]+)"', read))
    assert known - variables == set()


@EVERY_PAGE
def test_every_query_block_parses(page):
    for language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "promql":
            promql_parser.parse(body)
