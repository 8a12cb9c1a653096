"""What the documents state about links, paths, verbs, commands, flags, variables and queries is true."""

import re
import shlex
import tomllib
from pathlib import Path

import promql_parser
import pytest

from exporter import cli
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.flags.table import COMMANDS

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
DOCUMENTS = sorted(
    path for path in ROOT.rglob("*.md") if not any(part[0] == "." for part in path.relative_to(ROOT).parts[:-1])
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
SWITCHING = (ROOT / "docs/switching.md").read_text(encoding="utf-8")

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EVERY_DOCUMENT = pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)


def without_code(text):
    return SPAN.sub("", FENCE.sub("", text))


def code(text):
    """The lines of fenced shell and plain blocks, and the texts between backticks."""
    blocks = [body for language, body in FENCE.findall(text) if language in {"", "sh", "bash"}]
    return [*"".join(blocks).replace("\\\n", " ").splitlines(), *SPAN.findall(FENCE.sub("", text))]


def anchors(path):
    """The fragments by which links can name the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text):
    """The arguments of each `gpugauge` command line, also of one that kubectl starts in a container."""
    for shown in code(text):
        line = shown.partition(" -- ")[2] if shown.startswith(("helm ", "kubectl ")) else shown
        words = shlex.split(line, comments=True) if re.search(r"(^|/)gpugauge(\s|$)", line) else []
        positions = [position for position, word in enumerate(words) if word.rpartition("/")[2] == "gpugauge"]
        if positions:
            yield words[positions[0] + 1 :]


def paths(text):
    """The files, folders and patterns such as `*.py` below our folders, named in the code of a document."""
    for word in " ".join(code(text)).split():
        if re.fullmatch(r"\w+/([\w.*-]+(/[\w.*-]+)*/?)?", word) and word.partition("/")[0] in FOLDERS:
            yield word.rstrip("/")


def modules(text):
    """The modules of ours that the text runs with `python -m`."""
    for line in code(text):
        yield from (name for name in re.findall(r"python -m ([\w.]+)", line) if name.partition(".")[0] in FOLDERS)


def columns(drawing):
    """The drawing of ARCHITECTURE.md: the layers of each package, whose column begins below its name."""
    head, _, *rows = drawing.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    ends = [*starts[1:], None]
    return {
        head[start:end].strip(): " ".join(" ".join(row[start:end] for row in rows).split())
        for start, end in zip(starts, ends, strict=True)
    }


def options(command):
    known = (*COMMANDS[command].flags(), *COMMANDS[command].ignored)
    return {name for flag in known for name in flag.names()}


@EVERY_DOCUMENT
def test_every_relative_link_leads_to_a_file_and_its_heading(document):
    for target in LINK.findall(without_code(document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        path = document.parent / name if name else document
        assert path.exists(), target
        assert not heading or heading in anchors(path), target


def test_links_are_found_in_prose_and_not_in_code():
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


def test_every_verb_that_a_document_names_is_in_the_makefile_and_contributing_explains_every_verb():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split())
    assert verbs <= set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    named = {
        (name, verb)
        for name, document in zip(NAMES, DOCUMENTS, strict=True)
        for line in code(document.read_text(encoding="utf-8"))
        for verb in re.findall(r"(?:^|&& )make ([a-z0-9_-]+)", line)
    }
    assert {verb for _, verb in named} <= verbs, named
    assert {verb for name, verb in named if name == "CONTRIBUTING.md"} == verbs


DRAWN = ("exporter", "exporter.node", "exporter.cluster")
"""The packages whose layers the drawing shows; smaller ones have contracts too."""


def test_the_drawing_of_imports_shows_the_layers_that_the_linter_checks():
    contracts = {
        contract["containers"][0]: " ".join(contract["layers"])
        for contract in PROJECT["importlinter"]["contracts"]
        if contract.get("containers", [""])[0] in DRAWN
    }
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawings = [body for _, body in FENCE.findall(architecture) if body.startswith("exporter ")]
    assert [columns(drawing) for drawing in drawings] == [contracts]


def test_contributing_explains_every_marker():
    markers = {line.partition(":")[0] for line in PROJECT["pytest"]["ini_options"]["markers"]}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == markers


@EVERY_DOCUMENT
def test_every_path_that_a_document_names_exists(document):
    named = set(paths(document.read_text(encoding="utf-8")))
    assert {path for path in named if not any(ROOT.glob(path))} == set()


def test_paths_are_found():
    text = (
        "`exporter/cli.py`, `alerts/`, `docs/<name>.md`, `and/or`, `exporter`\n```sh\npytest tests/docs/*.py -x\n```\n"
    )
    assert list(paths(text)) == ["tests/docs/*.py", "exporter/cli.py", "alerts"]


@EVERY_DOCUMENT
def test_every_module_that_a_document_runs_can_be_run(document):
    for name in modules(document.read_text(encoding="utf-8")):
        place = ROOT / name.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), name


def test_modules_are_found():
    assert list(modules("`python -m demo`, `.venv/bin/python -m alerts --output x`, `python -m venv .venv`")) == [
        "demo",
        "alerts",
    ]


@EVERY_DOCUMENT
def test_every_command_line_that_a_document_shows_can_be_parsed(document):
    for arguments in commands(document.read_text(encoding="utf-8")):
        assert cli.parse(arguments, {}).command in COMMANDS


def test_command_lines_are_found():
    assert [line[:1] for line in commands("```sh\n.venv/bin/gpugauge cluster --kubeconfig FILE  # x\n```\n")] == [
        ["cluster"]
    ]
    shown = "```sh\nhelm install gpugauge x \\\n  --set a=b\nkubectl exec -n gpugauge p -- gpugauge doctor\n```\n"
    assert list(commands(shown)) == [["doctor"]]
    assert list(commands("`gpugauge_build_info` `docker build -t gpugauge-x`")) == []


def test_switching_names_no_flag_that_the_node_exporter_does_not_have():
    spans = " ".join(line for line in code(SWITCHING) if not line.startswith(("kubectl ", "gpugauge compare ")))
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", spans))
    known = options("node")
    go_spellings = {f"{dash}{name.lstrip('-')}" for name in known for dash in ("-", "--")}
    assert len(named & known) > 8
    assert named - go_spellings == set()


def test_switching_names_the_flags_that_dcgm_exporter_does_not_have():
    ours = {flag for flag in COMMANDS["node"].flags() if flag.variable.startswith("GPUGAUGE_")}
    (paragraph,) = re.findall(r"flags.md\) has all of them, and ours:\n(.*?)\. ", SWITCHING, re.DOTALL)
    assert set(re.findall(r"`(--[a-z-]+)`", paragraph)) == {"--expected-gpus", *(flag.names()[0] for flag in ours)}


def test_the_runbook_explains_exactly_the_pending_reasons_that_exist():
    runbook = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## GPUWorkloadPending$(.*?)^## ", runbook, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    assert [reason for reason, _, _ in rows] == list(PendingReason)
    assert all(meaning.strip() and remedy.strip() for _, meaning, remedy in rows)


@EVERY_DOCUMENT
def test_every_query_block_parses(document):
    for language, body in FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "promql":
            promql_parser.parse(body)
