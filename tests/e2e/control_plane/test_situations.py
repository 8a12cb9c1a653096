"""Every reason that a real scheduler can produce, as the watcher exposes it over HTTP and as `explain` gives it."""

import json
import re
import time
from collections import Counter

import pytest

from exporter.cli import parse
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.commands.explain.command import run
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.situation import made, scheduled
from tests.e2e.control_plane.situations import ALL

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
RIGHT_SECONDS = 30.0


def counted(text, metric, namespace):
    """By reason, what a metric of the watcher counts in a namespace."""
    found = Counter()
    for name, labels, value in SAMPLE.findall(text):
        given = dict(LABEL.findall(labels))
        if name == metric and given["namespace"] == namespace:
            found[given["reason"]] += int(float(value))
    return found


def exposed(watcher, namespace):
    """(pending pods by reason, work without pods by reason) of a namespace."""
    text = watcher.get("/metrics")[1]
    return tuple(counted(text, f"gpugauge_pending_{what}", namespace) for what in ("pods", "workloads"))


def explained(plane, name):
    path = plane.kubeconfig("admin", processes.ADMIN)
    return json.loads(run(parse(["explain", name, "--json", "--kubeconfig", path], {}), time.time))["reason"]


@pytest.mark.parametrize("situation", ALL, ids=lambda each: each.name)
def test_every_pod_has_its_reason(plane, watcher, situation):
    expected = situation.reasons(), Counter(situation.blocked)
    with made(plane, situation):
        try:
            plane.until(lambda: exposed(watcher, situation.name) == expected, RIGHT_SECONDS)
        except AssertionError:
            found = exposed(watcher, situation.name)
            raise AssertionError(f"{found} instead of {expected}: {scheduled(plane, situation.name)}") from None
        found = {name: explained(plane, f"{situation.name}/{name}") for name in situation.expected}
        assert found == dict(situation.expected)


def test_every_reason_is_produced():
    produced = {reason for each in ALL for reason in (*each.reasons(), *each.blocked)}
    assert produced == {str(reason) for reason in PendingReason}
