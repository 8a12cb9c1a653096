"""`gpugauge compare --uses`: what in rules, dashboards and autoscalers would find nothing after a switch."""

import json
from pathlib import Path

import pytest

from exporter import cli
from exporter.commands.compare.command import run
from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import parsed
from exporter.commands.compare.uses.expression import LabelMatcher, used
from exporter.commands.compare.uses.judging import UsesJudge
from exporter.commands.compare.uses.passages import Passage, passages
from exporter.config import ConfigError

FOLDER = Path(__file__).parent
GOLDEN = FOLDER.parents[2] / "golden" / "compare" / "uses.txt"
FILES = ("rules.yaml", "dashboard.json", "autoscaling.yaml", "notes.txt")
NEW = "../responses/whole-new.prom"


def judged(text, new):
    return [(each.what, each.reason) for each in UsesJudge(parsed(new, "new")).judge([Passage("here", text)])]


def test_files_of_every_kind_are_judged_as_in_the_golden_text(monkeypatch):
    monkeypatch.chdir(FOLDER / "files")
    text, keeps = run(cli.parse(["compare", "--uses", *FILES, NEW], {}))
    assert text == GOLDEN.read_text()
    assert not keeps


def test_json_has_every_use(monkeypatch):
    monkeypatch.chdir(FOLDER / "files")
    text, _ = run(cli.parse(["compare", "--json", "--uses", "notes.txt", NEW], {}))
    document = json.loads(text)
    assert document["loses_data"]
    assert {each["what"]: each["reason"] for each in document["uses"]} == {
        "hpc_job": "hpc_job",
        "dcgm_power_usage": "metric_spelling",
    }


def test_files_that_lose_nothing(monkeypatch, tmp_path):
    (tmp_path / "rules.yaml").write_text("groups: [{rules: [{expr: 'max by (gpu) (DCGM_FI_DEV_GPU_TEMP) > 90'}]}]")
    monkeypatch.chdir(FOLDER / "responses")
    text, keeps = run(cli.parse(["compare", "--uses", str(tmp_path / "rules.yaml"), "whole-new.prom"], {}))
    assert keeps
    assert text.endswith("Nothing would lose data.\n")


@pytest.mark.parametrize(
    ("matcher", "demands"),
    [
        (("l", "=", "x"), True),
        (("l", "=", ""), False),
        (("l", "!=", ""), True),
        (("l", "!=", "x"), False),
        (("l", "=~", ".+"), True),
        (("l", "=~", ".*"), False),
        (("l", "=~", "$node"), True),
        (("l", "=~", "(broken"), True),
        (("l", "!~", "a|"), True),
        (("l", "!~", "a"), False),
    ],
)
def test_which_matchers_demand_their_label(matcher, demands):
    assert LabelMatcher(*matcher).demands_label is demands


@pytest.mark.parametrize(
    ("text", "metrics", "labels"),
    [
        ("sum by (a, b) (DCGM_FI_X{c='d'}[5m])", ["DCGM_FI_X"], ["a", "b"]),
        ("DCGM_FI_X * on (a) group_left (b) other{Hostname='x'}", ["DCGM_FI_X"], ["a", "b"]),
        ("sum without (a) (DCGM_FI_X) and ignoring (b) DCGM_EXP_Y", ["DCGM_FI_X", "DCGM_EXP_Y"], []),
        ('{__name__=~"DCGM_FI_X|DCGM_FI_Y",a="b"}', ["DCGM_FI_X", "DCGM_FI_Y"], []),
        ('{__name__=~"DCGM_FI_DEV_.*"}', [], []),
        ("DCGM_FI_DEV_$metric", [], []),
        ('label_join(DCGM_FI_X, "to", "-", "a", "b")', ["DCGM_FI_X"], ["a", "b"]),
        ("prometheus.googleapis.com/DCGM_FI_X/gauge", ["DCGM_FI_X"], []),
        ("label_values(DCGM_FI_X{a='b'}, c)", ["DCGM_FI_X"], ["c"]),
        ("DCGM_FI_X{a=", ["DCGM_FI_X"], []),
    ],
)
def test_what_a_text_uses(text, metrics, labels):
    found = used(text)
    assert ([each.metric for each in found.selectors], found.labels) == (metrics, labels)


def test_a_shared_device_has_no_container_to_select():
    new = 'DCGM_FI_DEV_FB_USED{gpu="0",container=""} 1\ngpugauge_allocation_info{sharing="time_slicing"} 1\n'
    found = judged('DCGM_FI_DEV_FB_USED{container!=""}', new)
    assert found == [('DCGM_FI_DEV_FB_USED{container!=""}', CompareReason.SHARED_DEVICE)]


def test_an_unallocated_device_is_no_reason():
    assert judged('DCGM_FI_DEV_FB_USED{container!=""}', 'DCGM_FI_DEV_FB_USED{gpu="0",container=""} 1\n') == []


def test_attribution_that_is_off():
    found = judged('DCGM_FI_DEV_FB_USED{exported_pod!=""}', 'DCGM_FI_DEV_FB_USED{gpu="0"} 1\n')
    assert found == [('DCGM_FI_DEV_FB_USED{exported_pod!=""}', CompareReason.NO_ATTRIBUTION)]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("DCGM_EXP_GPU_HEALTH_STATUS", CompareReason.HEALTH_BINDINGS),
        ("DCGM_FI_DEV_NO_SUCH_FIELD", CompareReason.UNKNOWN_FIELD),
        ("DCGM_EXP_XID_ERRORS_COUNT", CompareReason.NOT_IN_COUNTERS_FILE),
    ],
)
def test_why_a_metric_is_absent(name, reason):
    assert judged(name, 'DCGM_FI_DEV_FB_USED{gpu="0"} 1\n') == [(name, reason)]


def test_a_document_in_a_config_map_is_read():
    places = {each.place: each.text for each in passages(str(FOLDER / "files" / "autoscaling.yaml"))}
    assert any("seriesQuery" in place for place in places)


@pytest.mark.parametrize("words", [["--uses", "a"], ["--uses", "/no/such", NEW]])
def test_a_mistake_is_one_message(words, monkeypatch):
    monkeypatch.chdir(FOLDER / "files")
    with pytest.raises(ConfigError, match="--uses"):
        run(cli.parse(["compare", *words], {}))
