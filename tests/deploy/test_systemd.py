"""The systemd unit: systemd accepts it, its flags exist, and what it may do is little."""

import re
import shlex
import shutil
import subprocess

import pytest

from exporter import cli
from tests.deploy.manifests import ROOT

UNIT = ROOT / "deploy/systemd/gpugauge.service"
MOST_EXPOSED = 2.5
"""On systemd's scale from 0 to 10. What is left is the network, the devices, and files that all may read."""

systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on PATH")


def _settings(name):
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


def test_the_command_has_flags_that_exist_and_those_of_the_environment_file_are_split_into_words():
    (command,) = _settings("ExecStart")
    program, *words = shlex.split(command)
    assert program == "/opt/gpugauge/bin/gpugauge"
    assert words.pop() == "$GPUGAUGE_FLAGS"
    arguments = cli.parse(words, {})
    assert (arguments.command, str(arguments.state_file)) == ("node", "/var/lib/gpugauge/state.json")
    assert _settings("StateDirectory") == ["gpugauge"]


def test_a_reload_is_the_signal_that_the_exporter_reloads_with():
    assert _settings("ExecReload") == ["/bin/kill -HUP $MAINPID"]


def test_it_has_no_user_of_the_machine_and_no_capability():
    assert (_settings("DynamicUser"), _settings("CapabilityBoundingSet")) == (["yes"], [""])
    assert _settings("AmbientCapabilities") == []


@systemd
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/gpugauge/bin/gpugauge", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@systemd
def test_systemd_counts_little_that_it_may_do():
    command = ["systemd-analyze", "security", "--offline=true", UNIT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)[1]) <= MOST_EXPOSED
