"""Three data sets for every query of every dashboard: a healthy fleet, nothing at all, and MIG, sharing and trouble.

What nodes expose are golden files of the node exporter's own output. What the watcher exposes of them is written here.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.dashboards import trouble
from tests.dashboards.prometheus import GROWING, RULES, eventually, prometheus, query

GOLDEN = Path(__file__).parents[1] / "golden"
HOUR = 3600
SCRAPE_SECONDS = 3
VOLATILE = re.compile(r"(?<= )\*$", re.MULTILINE)
"""How golden files write a value that differs from run to run."""


@dataclass(frozen=True)
class DataSet:
    """Expositions by path, the labels of their targets, and series that exist once the rules have run."""

    expositions: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    last: tuple[str, ...] = ()
    rules: dict[str, str] = field(default_factory=dict)


FIRING = """
groups:
- name: firing
  interval: 1s
  rules:
  - alert: SomethingIsWrong
    expr: vector(1)
    labels: {component: gpu, severity: warning, area: hardware, node: node-4, namespace: dev, workload: notebook-lena}
  - alert: SomethingMayBeWrong
    expr: vector(1)
    for: 1h
    labels: {component: gpu, severity: critical, area: hardware, node: node-4}
"""


def without_alerts() -> dict[str, str]:
    """The generated rules that record series. Alerts would begin to fire while a test runs and change the lists.

    A test lasts less than the 5 minutes of values of which some rules take one per minute: it takes one per second.
    """
    found = {}
    for path in RULES.rglob("*.yaml"):
        groups = yaml.safe_load(path.read_text())["groups"]
        recorded = [{**each, "rules": [rule for rule in each["rules"] if "record" in rule]} for each in groups]
        text = json.dumps({"groups": [{**each, "interval": "1s"} for each in recorded if each["rules"]]})
        found[path.name] = text.replace("[4m59s:1m]", "[8s:1s]")
    return found


def node(name: str, scenario: str) -> str:
    """What the exporter of a node exposes in a scenario."""
    text = (GOLDEN / f"{scenario}.prom").read_text().replace('node="node-1"', f'node="{name}"')
    return VOLATILE.sub("0.004", text)


def target(name: str) -> dict[str, str]:
    """The labels of the scrape target of a node."""
    return {"job": "gpugauge-node", "node": name, "instance": name}


def line(metric: str, value: float | str, **labels: str) -> str:
    pairs = ",".join(f'{name}="{text}"' for name, text in labels.items())
    return f"{metric}{{{pairs}}} {value}"


def of_pod(namespace: str, pod: str = "") -> dict[str, str]:
    names = {"namespace": namespace, **({"pod": pod} if pod else {})}
    return {**names, **{f"gpu_{name}": value for name, value in names.items()}}


def of_running_pod(namespace: str, pod: str, workload: str, on: str, workload_class: str, now: float) -> list[str]:
    """A running pod as the watcher exposes it."""
    ids = of_pod(namespace, pod)
    owner = {"workload": workload, "workload_type": "Job", "workload_class": workload_class, "priority_class": ""}
    return [
        line("gpugauge_gpu_pod_info", 1, **ids, node=on, **owner),
        line("gpugauge_gpu_pod_phase", 1, **ids, phase="Running"),
        line("gpugauge_gpu_pod_start_timestamp_seconds", now - 3 * HOUR, **ids),
    ]


def capacity(on: str, resource: str, model: str, allocatable: int, requested: int, schedulable: int = 1) -> list[str]:
    """The devices of one resource of a node."""
    labels = {"node": on, "resource": resource, "model": model}
    amounts = {"capacity": allocatable, "allocatable": allocatable, "requested": requested}
    return [
        *(line(f"gpugauge_node_gpu_{name}", number, **labels) for name, number in amounts.items()),
        line("gpugauge_node_gpu_free", allocatable - requested, **labels),
        line("gpugauge_node_gpu_schedulable", schedulable, node=on),
        line("gpugauge_largest_free_block_devices", allocatable - requested, resource=resource, model=model),
        line("gpugauge_node_device_plugin_registered", 1, node=on),
        line("gpugauge_node_info", 1, node=on, model=model, gpu_count="8", sharing="none", pool="training"),
    ]


def waits(namespace: str, resource: str) -> list[str]:
    """A histogram of how long pods waited until they were scheduled."""
    labels = {**of_pod(namespace), "resource": resource, "size": "1"}
    name = "gpugauge_pod_scheduling_wait_seconds"
    buckets = [
        line(f"{name}_bucket", number, **labels, le=le) for le, number in (("60", 3), ("600", 5), ("+Inf", GROWING))
    ]
    return [*buckets, line(f"{name}_count", GROWING, **labels), line(f"{name}_sum", 2000, **labels)]


def of_pending_pod(namespace: str, pod: str, workload: str, resource: str, reason: str, since: float) -> list[str]:
    """A pending pod that asks for two devices, as the watcher exposes it."""
    owner = {"workload": workload, "workload_type": "Job"}
    ids, where = of_pod(namespace, pod), of_pod(namespace)
    wanted = {"resource": resource, "model": "any", "reason": reason}
    return [
        line("gpugauge_pending_pod_since_timestamp_seconds", since, **ids, resource=resource, **owner),
        line("gpugauge_pending_pod_reason", 1, **ids, **owner, reason=reason),
        line(
            "gpugauge_pending_workload_since_timestamp_seconds", since, **where, resource=resource, **owner, model="any"
        ),
        line("gpugauge_pending_pods", 1, **where, **wanted),
        line("gpugauge_pending_devices", 2, **where, **wanted),
        line("gpugauge_pending_oldest_timestamp_seconds", since, **where, reason=reason),
        line("gpugauge_gpu_pod_info", 1, **ids, **owner, workload_class="training", priority_class=""),
        line("gpugauge_gpu_pod_phase", 1, **ids, phase="Pending"),
    ]


def always(now: float) -> list[str]:
    """What every watcher exposes of itself."""
    return [
        line("gpugauge_leader", 1),
        line("gpugauge_source_up", 1, source="kubernetes"),
        line("gpugauge_pending_workloads_untracked", 0),
        line("gpugauge_build_info", 1, version="0.1.0", contract="1", python_version="3.11"),
        *(line("gpugauge_watch_last_sync_timestamp_seconds", now, object=each) for each in ("pods", "nodes")),
        line("gpugauge_last_collection_timestamp_seconds", now),
    ]


def healthy(now: float) -> DataSet:
    """One node with eight whole GPUs, of which seven are allocated and none has been idle; nothing is pending."""
    resource, model = "nvidia_com_gpu", "NVIDIA-H200"
    watcher = [
        *always(now),
        *of_running_pod("ml-platform", "llama-pretrain-worker-0", "llama-pretrain", "node-1", "training", now),
        *of_running_pod("inference", "chat-serving-7c9d6b5f48-m8qzl", "chat-serving", "node-1", "serving", now),
        *of_running_pod("research", "ablation-7-xk2vp", "ablation-7", "node-1", "training", now),
        *capacity("node-1", resource, model, 8, 7),
        *waits("research", resource),
        line("gpugauge_quota_hard", 8, **of_pod("ml-platform"), resource=resource),
        line("gpugauge_quota_used", 4, **of_pod("ml-platform"), resource=resource),
        line("gpugauge_price_per_hour", 3.5, model=model, pool="training", capacity_type="", currency="USD"),
        line("gpugauge_namespace_info", 1, **of_pod("research"), team="vision", cost_center="7", environment="prod"),
    ]
    return DataSet(
        {"/node-1": node("node-1", "whole"), "/watcher": "\n".join(watcher) + "\n"},
        {"/node-1": target("node-1"), "/watcher": {"job": "gpugauge-cluster"}},
        (
            "workload:gpu_busy:sum",
            "cluster:gpu_idle_devices:count15m",
            "model:gpu_free:sum",
            "model:gpu_power_watts:sum",
        ),
    )


FINETUNE = "GPU-f31a2abf-f18a-5148-951e-ef5515cd2f90"


def mig(name: str, now: float) -> str:
    """A node with MIG devices: the GPU of one pod is idle and had an XID, the activity of one device is unknown."""
    lines = node(name, "mig").replace(" 0.877284", " 0.001").splitlines()
    known = [each for each in lines if not ("_busy_ratio{" in each and 'GPU_I_ID="9"' in each)]
    event = line("gpugauge_xid_last_timestamp_seconds", now - HOUR, gpu="1", UUID=FINETUNE, xid="94", node=name)
    return "\n".join([*known, event, ""])


def errors(name: str, now: float) -> str:
    """A node with XIDs, heat and a source with a problem, of which the allocation of one GPU is unknown."""
    text = node(name, "xid").replace("1800000", str(int(now))[:7])
    lines = re.sub(r"(?m)^(gpugauge_devices_expected.*) 2$", r"\1 3", text).splitlines()
    unknown = next(each for each in lines if each.startswith("gpugauge_device_allocated_pods{"))
    lines.remove(unknown)
    throttled = next(each for each in lines if each.startswith("gpugauge_clock_event{") and "hw_thermal" in each)
    lines[lines.index(throttled)] = throttled[:-1] + "1"
    return "\n".join(
        [
            *lines,
            *partly_idle(name, *re.findall(r'gpugauge_device_info\{.*?UUID="([^"]*)"', "\n".join(lines))),
            line("gpugauge_source_problem", 1, node=name, source="simulated", reason="profiling_unavailable"),
            line("gpugauge_field_unsupported_devices", 1, node=name, field=TENSOR, reason="not_supported"),
            *trouble.of_gpu(name),
            *trouble.of_exporter(name),
            "",
        ]
    )


def partly_idle(name: str, busy: str, idle: str) -> list[str]:
    """A pod with two GPUs, of which one is idle."""
    ids = {**of_pod("dev", "two-0"), "container": "main", "gpu_container": "main"}
    info = {"resource": "nvidia_com_gpu", "sharing": "exclusive", "node": name}
    return [
        *(line("gpugauge_allocation_info", 1, UUID=uuid, **ids, **info) for uuid in (busy, idle)),
        line("gpugauge_allocation_busy_ratio", 0.9, UUID=busy, **ids, node=name),
        line("gpugauge_allocation_busy_ratio", 0, UUID=idle, **ids, node=name),
    ]


TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"


def mig_sharing_and_trouble(now: float) -> DataSet:
    """Nodes with MIG devices, with time-sliced GPUs (cordoned), with errors and without data; pending and idle ones."""
    slices, shared = "nvidia_com_mig_1g_10gb", "nvidia_com_gpu_shared"
    watcher = [
        *always(now),
        *of_running_pod("inference", "embedder-6f7d9c5b7d-9kx2c", "embedder", "node-2", "serving", now),
        *of_running_pod("inference", "reranker-75c8bb6d59-ztw4l", "reranker", "node-2", "serving", now),
        *of_running_pod("notebooks", "jupyter-dana-0", "jupyter-dana", "node-2", "interactive", now),
        *of_running_pod("notebooks", "jupyter-omar-0", "jupyter-omar", "node-2", "interactive", now),
        *of_running_pod("ml-platform", "finetune-mistral-2", "finetune-mistral", "node-2", "training", now),
        *of_running_pod("dev", "notebook-lena-0", "notebook-lena", "node-3", "interactive", now),
        *of_running_pod("dev", "batch-thumbnails-29x7k", "batch-thumbnails", "node-3", "training", now),
        *capacity("node-2", slices, "NVIDIA-A100-SXM4-80GB", 4, 3),
        *capacity("node-3", shared, "NVIDIA-L4", 4, 4, schedulable=0),
        *of_pending_pod("research", "sweep-0", "sweep", slices, "insufficient_gpu", now - HOUR),
        *of_pending_pod("research", "big-0", "big", "nvidia_com_gpu", "unsatisfiable_size", now - 2 * HOUR),
        *trouble.of_cluster("node-2"),
        line("gpugauge_node_gpu_stranded", 1, node="node-2", resource=slices, blocker="cpu"),
        line("gpugauge_node_maintenance", 1, node="node-3", reason="cordon"),
        line("gpugauge_pod_alert_exemption", 1, **of_pod("dev", "notebook-lena-0"), alert="GPUPodIdle", until=""),
        line("gpugauge_namespace_alert_exemption", 1, **of_pod("dev"), alert="GPUPodLowUtilization", until=""),
        line("gpugauge_pending_workloads", 2, **of_pod("dev"), queue="batch", resource=shared, reason="queued"),
        line("gpugauge_pending_workload_devices", 4, **of_pod("dev"), queue="batch", resource=shared, reason="queued"),
    ]
    return DataSet(
        {
            "/node-2": mig("node-2", now),
            "/node-3": node("node-3", "time_sliced-processes"),
            "/node-4": errors("node-4", now),
            "/node-5": "no exposition\n",
            "/watcher": "\n".join(watcher) + "\n",
        },
        {
            "/node-2": target("node-2"),
            "/node-3": target("node-3"),
            "/node-4": target("node-4"),
            "/node-5": target("node-5"),
            "/watcher": {"job": "gpugauge-cluster"},
        },
        (
            "workload:gpu_pending_oldest:info",
            "model:gpu_pending_devices:sum",
            "model:gpu_idle_devices:count15m",
            "ALERTS",
        ),
        {"firing.yaml": FIRING},
    )


DATA_SETS = {"healthy": healthy, "empty": lambda _now: DataSet(), "MIG": mig_sharing_and_trouble}
"""Each makes the data set from the time of now, in seconds since the epoch."""


@contextmanager
def running(folder: Path, name: str) -> Iterator[str]:
    """Run a Prometheus that scrapes a data set. Yields its URL once the last series are recorded."""
    data = DATA_SETS[name](time.time())
    with prometheus(folder, data.jobs, data.expositions, without_alerts() | data.rules, SCRAPE_SECONDS) as address:
        for last in data.last:
            eventually(lambda last=last: query(address, "query", query=last) != [], last)
        yield address
