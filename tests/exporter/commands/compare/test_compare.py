"""`gpugauge compare` on recorded responses of a stock dcgm-exporter and of ours, on the same engine and kubelet.

`responses/` has them: two whole GPUs; and a GPU with MIG devices, two of which share a GPU instance, with a whole one.
"""

import json
import re
from pathlib import Path

import pytest

from exporter import cli
from exporter.commands.compare.command import run
from exporter.commands.compare.comparing import ResponseComparison
from exporter.commands.compare.finding import SwitchGroup
from exporter.commands.compare.reasons import FACTS, CompareReason
from exporter.commands.compare.response import parsed
from exporter.config import ConfigError

RESPONSES = Path(__file__).parent / "responses"
GOLDEN = Path(__file__).parents[3] / "golden" / "compare"
ROOT = Path(__file__).parents[4]


def response(name):
    return (RESPONSES / f"{name}.prom").read_text()


def compared(old, new):
    return ResponseComparison(parsed(old, "old"), parsed(new, "new")).findings()


def told(old, new):
    """Group, reason, label and number of series of every finding but what is the same or new."""
    return [
        (each.group, each.reason, each.label, each.series)
        for each in compared(old, new)
        if each.group not in (SwitchGroup.SAME, SwitchGroup.NEW)
    ]


@pytest.mark.parametrize("name", ["whole", "mig"])
def test_recorded_responses_are_told_as_in_the_golden_texts(name, monkeypatch):
    monkeypatch.chdir(RESPONSES)
    text, harmless = run(cli.parse(["compare", f"{name}-old.prom", f"{name}-new.prom"], {}))
    assert text == (GOLDEN / f"{name}.txt").read_text()
    assert harmless


def test_no_series_of_whole_gpus_is_another_one():
    assert told(response("whole-old"), response("whole-new")) == []


def test_json_has_every_series_of_old_once(monkeypatch):
    monkeypatch.chdir(RESPONSES)
    text, harmless = run(cli.parse(["compare", "--json", "mig-old.prom", "mig-new.prom"], {}))
    document = json.loads(text)
    whole = [each for each in document["findings"] if not each["label"] and each["group"] != "new"]
    assert harmless
    assert document["harmless"]
    labels = sum(each["series"] for each in document["findings"] if each["label"])
    assert sum(each["series"] for each in whole) + labels == document["old"]["series"] == 91


def test_another_spelling_of_the_host_label_is_a_setting():
    old = response("whole-old").replace("hostname=", "Hostname=")
    assert told(old, response("whole-new")) == [(SwitchGroup.RENAMED, CompareReason.HOST_LABEL, "Hostname", 46)]


def test_both_spellings_of_the_host_label_lose_nothing():
    old = response("whole-old").replace("hostname=", "Hostname=")
    new = response("whole-new").replace('hostname="node-1"', 'hostname="node-1",Hostname="node-1"')
    assert told(old, new) == []


def test_a_metric_that_the_new_counters_file_lacks():
    new = re.sub(r"^DCGM_FI_DEV_GPU_TEMP.*\n", "", response("whole-new"), flags=re.MULTILINE)
    assert told(response("whole-old"), new) == [(SwitchGroup.MISSING, CompareReason.NOT_IN_COUNTERS_FILE, "", 2)]


def test_a_metric_that_the_devices_do_not_have():
    new = re.sub(r"^DCGM_FI_DEV_GPU_TEMP.*\n", "", response("whole-new"), flags=re.MULTILINE)
    new += 'gpugauge_field_unsupported_devices{field="DCGM_FI_DEV_GPU_TEMP",reason="not_supported",node="n"} 2\n'
    assert told(response("whole-old"), new) == [(SwitchGroup.MISSING, CompareReason.UNSUPPORTED_HERE, "", 2)]


def test_another_name_of_the_same_field():
    old = response("whole-old").replace("DCGM_FI_DEV_GPU_TEMP{", "DCGM_FI_DEV_GPU_TEMP_CELSIUS{")
    assert told(old, response("whole-new")) == [(SwitchGroup.RENAMED, CompareReason.METRIC_SPELLING, "", 2)]


def test_a_gpu_that_is_not_there():
    new = "".join(line for line in response("whole-new").splitlines(keepends=True) if "GPU-7c194658" not in line)
    assert told(response("whole-old"), new) == [(SwitchGroup.MISSING, CompareReason.DEVICE_MISSING, "", 23)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [("124309", CompareReason.READ_LATER), ("124", CompareReason.VALUE_DIFFERS)],
)
def test_another_value(value, reason):
    old = response("whole-old").replace("} 124310\n", f"}} {value}\n", 1)
    assert told(old, response("whole-new")) == [(SwitchGroup.DIFFERENT, reason, "", 1)]


def test_a_source_that_is_down_is_named_once():
    new = 'gpugauge_source_up{node="n",source="dcgm"} 0\n'
    assert {each[1] for each in told(response("whole-old"), new)} == {CompareReason.SOURCE_DOWN}


def test_series_that_are_repeated_for_each_pod_are_missing_once_less():
    shared = 'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-1",pod="{pod}"}} 5\n'
    new = 'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",pod=""} 5\n'
    found = told(shared.format(pod="a") + shared.format(pod="b"), new)
    assert (SwitchGroup.MISSING, CompareReason.ONCE_PER_DEVICE, "", 1) in found


def test_attribution_that_is_off_is_a_setting():
    new = re.sub(r'(namespace|pod|container)="[^"]*"', r'\1=""', response("whole-new"))
    assert {each[1] for each in told(response("whole-old"), new)} == {CompareReason.NO_ATTRIBUTION}


def test_a_line_that_is_no_sample_costs_itself():
    found = told(response("whole-old") + "DCGM_FI_DEV_NAME{ oops\n", response("whole-new"))
    assert found == [(SwitchGroup.DIFFERENT, CompareReason.LINE_REJECTED, "", 1)]


@pytest.mark.parametrize("words", [[], ["whole-old.prom"], ["a", "b", "c"]])
def test_two_responses_are_needed(words):
    with pytest.raises(ConfigError, match="needs OLD and NEW"):
        run(cli.parse(["compare", *words], {}))


@pytest.mark.parametrize("target", ["/no/such/file", "http://127.0.0.1:1/metrics", str(RESPONSES / "empty.prom")])
def test_a_response_that_cannot_be_read_is_one_message(target, tmp_path):
    with pytest.raises(ConfigError, match=re.escape(target)):
        run(cli.parse(["compare", target, target], {}))


def test_every_reason_has_a_cause_and_a_page_that_exists():
    assert FACTS.keys() == set(CompareReason)
    for _, link in FACTS.values():
        page, _, anchor = link.partition("#")
        text = (ROOT / page).read_text()
        headings = {
            re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.split("\n")
        }
        assert not anchor or anchor in headings
