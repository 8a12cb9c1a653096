"""The Helm chart, rendered as `helm install` would send it."""

import copy
import functools
import json
import shutil
import subprocess

import pytest
import yaml

from tests.deploy.manifests import ROOT

CHART = ROOT / "deploy/helm/gpugauge"
HELM = shutil.which("helm")
NEEDS_HELM = [
    pytest.mark.skipif(HELM is None, reason="helm is not on PATH: `make setup-helm` builds it"),
    pytest.mark.slow,
]
"""Marks a module that renders the chart. One of its tests takes a quarter of a second; there are hundreds."""
IMAGE = {"image": {"repository": "gpugauge"}}
OF_HELM = {"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"}
"""Labels that Helm's conventions add."""
NODE, WATCHER = ("DaemonSet", "gpugauge-node"), ("Deployment", "gpugauge-cluster")


def merged(*values):
    """Values as Helm merges several files of them."""
    result = {}
    for each in values:
        for key, value in each.items():
            old = result.get(key)
            result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def nested(**values):
    """Values from dotted names, with two underscores for a dot: `tls__enabled=True`."""
    result = {}
    for name, value in values.items():
        *groups, last = name.split("__")
        result = merged(result, functools.reduce(lambda inner, group: {group: inner}, reversed(groups), {last: value}))
    return result


def _run(values, *options):
    command = [HELM, "template", "gpugauge", str(CHART), "--namespace=gpugauge", "--values=-", *options]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, timeout=120, check=False)


@functools.cache
def _rendered(text, options):
    done = _run(json.loads(text), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values=(), *options):
    """The objects, with an image; by kind and name."""
    text = _rendered(json.dumps(merged(IMAGE, dict(values)), sort_keys=True), options)
    return copy.deepcopy(_parsed(text))


@functools.cache
def _parsed(text):
    """Parse in C: eight thousand lines of rules and dashboards take a second otherwise."""
    found = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    return named


def refused(values):
    """The message with which rendering fails."""
    done = _run(values)
    assert done.returncode != 0
    return done.stderr


def notes(values=()):
    """What is printed after the installation."""
    command = [HELM, "install", "gpugauge", str(CHART), "--namespace=gpugauge", "--values=-", "--dry-run=client"]
    text = json.dumps(merged(IMAGE, dict(values)))
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def pod(objects, workload=NODE):
    spec = objects[workload]["spec"]
    return spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]


def container(objects, workload=NODE):
    only, *proxies = pod(objects, workload)["containers"]
    assert [each["name"] for each in proxies] in ([], ["auth-proxy"])
    return only
