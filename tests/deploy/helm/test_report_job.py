"""The CronJob that writes the report: its privileges, its flags, and which files it leaves."""

import os
import re
import subprocess

import pytest

from exporter.cli import parse
from tests.deploy.helm.chart import NEEDS_HELM, container, merged, nested, pod, rendered
from tests.deploy.helm.combinations import REPORT
from tests.deploy.helm.test_privileges import privileges

pytestmark = NEEDS_HELM

JOB = ("CronJob", "gpugauge-report")
VALUES = {"report": REPORT}
WRITES_FLAGS = """\
#!/bin/sh
[ "$2" != "$FAILING" ] || { echo cut off; exit 1; }
printf '%s\\n' "$@"
"""


def left(folder, values=VALUES, failing=""):
    """The exit status of the job's command with a program that writes its arguments, and the files by name."""
    program, reports = folder / "bin/gpugauge", folder / "reports"
    program.parent.mkdir()
    reports.mkdir()
    program.write_text(WRITES_FLAGS)
    program.chmod(0o755)
    only = container(rendered(values), JOB)
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "FAILING": failing}
    command = [*only["command"], *only["args"]]
    done = subprocess.run(command, cwd=reports, env=environment, timeout=60, check=False)
    return done.returncode, {path.name: path.read_text().splitlines() for path in reports.iterdir()}


def test_there_is_none_without_its_value():
    assert JOB not in rendered()


def test_it_has_no_privilege_and_writes_to_the_volume_of_the_values():
    objects = rendered(VALUES)
    assert privileges(objects, JOB) == set()
    volumes = {each["name"]: each for each in pod(objects, JOB)["volumes"]}
    assert volumes["reports"]["persistentVolumeClaim"] == {"claimName": "reports"}
    (mount,) = [each for each in container(objects, JOB)["volumeMounts"] if each["name"] == "reports"]
    assert mount["mountPath"] == container(objects, JOB)["workingDir"]


def test_each_form_is_a_file_of_the_same_days_made_with_flags_that_the_command_has(tmp_path):
    status, files = left(tmp_path)
    assert status == 0
    assert {re.sub(r"\d{4}-\d\d-\d\d", "DAY", name) for name in files} == {"gpu-hours-DAY.html", "gpu-hours-DAY.csv"}
    for name, flags in files.items():
        given = parse(flags, {})
        assert (given.command, given.days, given.prometheus) == ("report", 7, "http://prometheus:9090")
        assert f"gpu-hours-{flags[2].removeprefix('--to=')}." in name
        assert given.csv == name.endswith("csv") != given.html
    assert len({tuple(flags[2:]) for flags in files.values()}) == 1


def test_a_report_that_fails_is_no_file(tmp_path):
    status, files = left(tmp_path, failing="--csv")
    assert status == 1
    assert [name.rpartition(".")[2] for name in files if not name.startswith(".")] == ["html"]


@pytest.mark.parametrize(("kind", "flag"), [("bearerToken", "bearer_token"), ("basicAuth", "basic_auth")])
def test_credentials_and_authority_are_files_of_the_secrets(tmp_path, kind, flag):
    of_prometheus = {"credentials": {"existingSecret": "p", "key": "k", "kind": kind}, "ca": {"existingSecret": "c"}}
    values = merged(VALUES, nested(report__prometheus=of_prometheus))
    _, files = left(tmp_path, values)
    given = parse(files.popitem()[1], {})
    objects = rendered(values)
    places = {each["name"]: each["mountPath"] for each in container(objects, JOB)["volumeMounts"]}
    secrets = {each["name"]: each["secret"] for each in pod(objects, JOB)["volumes"] if "secret" in each}
    expected = {"credentials": ("p", "k", f"prometheus_{flag}_file"), "ca": ("c", "ca.crt", "prometheus_ca_file")}
    for name, (secret, key, argument) in expected.items():
        (item,) = secrets[name]["items"]
        assert (secrets[name]["secretName"], item["key"]) == (secret, key)
        assert getattr(given, argument) == f"{places[name]}/{item['path']}"
