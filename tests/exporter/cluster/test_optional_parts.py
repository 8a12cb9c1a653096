"""Each optional part of the watcher's permissions: denied, it costs what the table of permissions says, and no more."""

import re
import time

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.permissions import WATCHED
from exporter.cluster.pipeline import ClusterPipeline
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.exporter.cluster import optional_parts
from tests.waiting import until

OPTIONAL = [part for part in WATCHED if not part.needed]
LABEL = re.compile(r'(\w+)="([^"]*)"')
SUMMED = tuple(f"gpugauge_pending_{what}" for what in ("pods", "devices", "oldest", "workload_", "pod_since"))
TIMES = "gpugauge_gpu_pod_start"
"""Numbers of the same pods and workloads whose reasons are compared one by one."""
LOSES = {
    "Events": {
        "reason of announced": ("scaling_up", "node_selector_or_affinity"),
        "reason of mounts": ("volume", "starting"),
        "work in no queue, quota": (2.0, 1.0),
    },
    "Quotas": {"quota_hard a": (16.0, None), "quota_used a": (8.0, None)},
    "Dynamic resource allocation": {
        "reason of templated": ("claim", "not_tried"),
        **{f"gpu_pod_{what} holds": (1.0, None) for what in ("info", "phase")},
        **{f"node_gpu_{what} d1": (4.0, None) for what in ("capacity", "allocatable")},
        **{f"node_gpu_{what} d1": (count, None) for what, count in (("requested", 1.0), ("free", 3.0))},
        "node_device_plugin_registered n1": (1.0, None),
        'largest_free_block_devices{resource="gpu_nvidia_com",model="NVIDIA-L4"}': (3.0, None),
    },
    "Controllers": {"work in no queue, quota": (2.0, 1.0)},
    "Jobs": {"work in no queue, quota": (2.0, 1.0), "work in big, queued": (1.0, None)},
    "Karpenter": {"reason of big": ("insufficient_gpu", "unsatisfiable_size")},
    "Cluster autoscaler": {"reason of waits": ("insufficient_gpu", "scaling_up")},
    "Kueue": {"work in ray-queue, queued": (1.0, None)},
}
"""What changes when a part may not be read: before and after, None where there is nothing."""


def fact(key, value):
    """One series as (what it speaks of, what it says)."""
    name, labels = key.partition("{")[0], dict(LABEL.findall(key))
    if name == "gpugauge_pending_pod_reason":
        return f"reason of {labels['gpu_pod']}", labels["reason"]
    if name == "gpugauge_pending_workloads":
        return f"work in {labels['queue'] or 'no queue'}, {labels['reason']}", value
    speaks_of = next((labels[label] for label in ("gpu_pod", "node", "gpu_namespace") if label in labels), None)
    short = (key if speaks_of is None else f"{name} {speaks_of}").removeprefix("gpugauge_")
    return short, value


def facts(pipeline, now):
    """What the watcher says of the cluster, without what it says of its watches."""
    found = {
        family.metric.name + labels.text: value
        for family in pipeline.collect(now).families
        for labels, value in family.samples
    }
    return dict(
        fact(key, value) for key, value in found.items() if not key.startswith(("gpugauge_watch_", TIMES, *SUMMED))
    )


def off(pipeline, now):
    """The objects that are not read, and why."""
    families = {family.metric.name: family for family in pipeline.collect(now).families}
    samples = families["gpugauge_watch_off"].samples if "gpugauge_watch_off" in families else ()
    return {tuple(value for _, value in labels.pairs) for labels, _ in samples}


def settled(pipeline, now):
    """Whether every kind was listed or is known to be denied."""
    stores = pipeline.collect(now).families
    listed = next(
        (family.samples for family in stores if family.metric.name == "gpugauge_watch_last_sync_timestamp_seconds"), ()
    )
    return len(listed) + len(off(pipeline, now)) == sum(len(part.resources) for part in WATCHED)


def watched(now, denied=()):
    """(facts, off) of a watcher that may not read these resources."""
    server = SimulatedApiServer()
    optional_parts.serve_all(server)
    optional_parts.fill(server, now)
    for name in denied:
        server.add_fault(ApiFault("list", name, times=10**6, status=403))
    server.start()
    pipeline = ClusterPipeline(ClusterConfig(api_server=server.url, tracked_after=-1.0))
    pipeline.start()
    try:
        until(lambda: settled(pipeline, now))
        assert pipeline.ready()
        snapshot = pipeline.collect(now)
        assert snapshot.health[0].up
        assert snapshot.problems == ()
        return facts(pipeline, now), off(pipeline, now)
    finally:
        pipeline.stop()
        server.stop()


@pytest.fixture(scope="module")
def now():
    return time.time()


@pytest.fixture(scope="module")
def everything(now):
    found, denied = watched(now)
    assert denied == set()
    return found


@pytest.mark.parametrize("part", OPTIONAL, ids=lambda part: part.name)
def test_without_its_permission_a_part_costs_only_what_is_found_from_it(part, now, everything):
    found, denied = watched(now, part.resources)
    assert denied == {(name, "forbidden") for name in part.resources}
    changed = {
        key: (everything.get(key), found.get(key))
        for key in everything.keys() | found.keys()
        if everything.get(key) != found.get(key)
    }
    assert changed == LOSES[part.name]


def test_every_part_adds_something():
    assert LOSES.keys() == {part.name for part in OPTIONAL}
    assert all(LOSES.values())
