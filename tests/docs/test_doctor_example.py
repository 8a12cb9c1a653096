"""What docs/doctor.md shows is what the command writes, and its example of a preflight is valid."""

import re
from pathlib import Path

import yaml

from exporter import cli

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")


def test_the_preflight_is_given_the_gpus_of_the_job_and_its_flags_can_be_parsed():
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pod = yaml.safe_load(block)["spec"]["template"]["spec"]
    (preflight,), (container,) = pod["initContainers"], pod["containers"]
    assert preflight["resources"] == container["resources"]
    assert pod["restartPolicy"] == "Never"
    parsed = cli.parse(preflight["args"], {})
    assert (parsed.command, parsed.source, parsed.warnings) == ("doctor", "nvml", ())


def test_the_end_of_the_screen_is_that_of_the_golden_screen():
    golden = (ROOT / "tests/golden/doctor/two-driver-versions.txt").read_text(encoding="utf-8")
    end = "\n".join(golden.splitlines()[-2:])
    assert f"```\n{end}\n```" in TEXT
