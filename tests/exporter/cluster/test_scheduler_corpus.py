"""Situations that were recorded on a real Kubernetes 1.37 control plane, with the right reason for each pod.

Each file of `scheduler_corpus` has the objects as the API server lists them, and under `expected` the reason of each
pod: null where it must not be counted as pending, `also_acceptable` for words that are as true. Controllers that get
no pods are under `expected_workloads`.
"""

import json
from datetime import datetime
from pathlib import Path

import pytest

from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.reasons.blocked_work import blocked_work
from exporter.cluster.view import view_of
from tests.exporter.cluster.fixture import GPUS
from tests.exporter.cluster.store_views import listed

CASES = sorted((Path(__file__).parent / "scheduler_corpus").glob("*.json"))


def view_of_case(case):
    """The view that a watcher has which may read everything."""
    now = datetime.fromisoformat(case["recorded_at"]).timestamp()
    stores = listed(now, **{kind.name: case.get(kind.name, []) for kind in object_kinds(GPUS)})
    return view_of(now, GPUS, stores, ClusterHistory())


def wrong(expected, found):
    """Each expectation that is not met, as (name, expected, found)."""
    return [
        (name, [each["reason"], *each["also_acceptable"]], found.get(name))
        for name, each in expected.items()
        if found.get(name) not in (each["reason"], *each["also_acceptable"])
    ]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_pod_and_controller_of_the_case_has_its_reason(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    view = view_of_case(case)
    pending = {f"{each.pod.namespace}/{each.pod.name}": each for each in view.pending}
    assert wrong(case["expected"], {name: str(each.reason) for name, each in pending.items()}) == []
    blocked = {
        f"{each.namespace}/{each.kind}/{each.name}": each
        for each in blocked_work(view.controllers, view.events, view.now)
    }
    workloads = case.get("expected_workloads", {})
    assert wrong(workloads, {name: str(each.reason) for name, each in blocked.items()}) == []
    for name, each in case["expected"].items():
        if "devices" in each:
            assert sum(count for _, count in pending[name].pod.requests) == each["devices"]
        if "workload" in each:
            assert (pending[name].pod.workload, pending[name].pod.workload_type) == (
                each["workload"],
                each["workload_type"],
            )
    for name, each in workloads.items():
        if "devices" in each:
            assert sum(count for _, count in blocked[name].requests) == each["devices"]
