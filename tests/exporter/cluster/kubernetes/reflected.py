"""What the tests of reflectors read of a pipeline and of the simulated API server, and the cluster they begin with."""

import threading
import time

from exporter.cluster.config import ClusterConfig
from simulators import objects
from simulators.api_server_http import KINDS

GPU = "nvidia.com/gpu"
SINCE = "gpugauge_pending_pod_since_timestamp_seconds"
STALE = ClusterConfig().stale_after + 1


JOBS = "/apis/batch/v1/jobs"


def reflector_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("reflector-")]


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.collect(time.time()).families
        for labels, value in family.samples
    }


def labels_of(pipeline, name):
    families = pipeline.collect(time.time()).families
    return [labels for family in families if family.metric.name == name for labels, _ in family.samples]


def pods_of(pipeline):
    """The names of the GPU pods that are exposed."""
    return {dict(labels.pairs)["gpu_pod"] for labels in labels_of(pipeline, "gpugauge_gpu_pod_info")}


def health(pipeline):
    return pipeline.collect(time.time()).health[0]


def restarts(pipeline, reason, kind="pods"):
    return series(pipeline)[f'gpugauge_watch_restarts_total{{object="{kind}",reason="{reason}"}}']


def lists(server, kind="pods"):
    return [request for request in server.requests if request.kind == kind and not request.watch]


def watches(server, kind="pods"):
    return [request for request in server.requests if request.kind == kind and request.watch]


def watched(server):
    """Whether every kind has had a watch."""
    return all(watches(server, kind) for kind in KINDS)


def fill(server, count=3):
    server.put("namespaces", objects.namespace("team-a"))
    server.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)))
    for number in range(count):
        server.put("pods", objects.pod(f"p{number}", "team-a"))
    return {f"p{number}" for number in range(count)}


def config_of(server, **options):
    return ClusterConfig(api_server=server.url, **options)
