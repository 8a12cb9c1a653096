"""Pods, and what a Prometheus answers about them: answers are found by the name of the metric that is asked for."""

import json

from exporter.cli import parse
from exporter.commands.explain.command import run
from simulators import objects
from tests.exporter.cluster.fixture import NOW
from tests.exporter.commands.prometheus.fake import answering, vector

BUSY, ALLOCATIONS = "avg_over_time(gpugauge_allocation_busy_ratio", "last_over_time(gpugauge_allocation_info"
BUSIEST, TENSOR = "max_over_time(gpugauge_allocation_busy_ratio", "gpugauge_device_tensor_active_ratio"
PODS, PCIE = "gpugauge_device_allocated_pods", "DCGM_FI_PROF_PCIE"
CPU, USED, IO = "container_cpu_cfs", "container_cpu_usage", "container_pressure_io"
RESTARTS, CLOCKS = "kube_pod_container_status_restarts_total", "gpugauge_clock_event"


def recorded(answers):
    """Answer a query with what is recorded for the first metric name that it has; nothing is recorded for others."""

    def answer(request):
        query = request["fields"]["query"]
        return 200, vector(*next((samples for part, samples in answers.items() if part in query), ()))

    return answer


def device(uuid, **more):
    return {"node": "n1", "UUID": uuid, **more}


def running_answers(busy, busiest=None, sharing="exclusive", **more):
    """Answers about a pod whose devices were this busy."""
    devices = [device(f"GPU-{number}") for number in range(len(busy))]
    return {
        ALLOCATIONS: [({**each, "sharing": sharing}, 1) for each in devices],
        BUSY: list(zip(devices, busy, strict=True)),
        BUSIEST: list(zip(devices, busiest or busy, strict=True)),
        **more,
    }


def explained(tmp_path, pods, answers, *words, name="default/p"):
    """What the command writes, of these objects and these answers."""
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"kind": "List", "items": pods}))
    with answering(recorded(answers)) as (url, requests):
        words = ["explain", name, "--objects", str(file), "--prometheus", url, *words]
        return run(parse(words, {}), lambda: NOW), [each["fields"]["query"] for each in requests]


def running_pod():
    return objects.running(objects.pod("p", created=NOW - 7200), "n1")
