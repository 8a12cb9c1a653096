"""What the first view of each dashboard costs on a fleet of 10,000 GPUs, worked out from the series that it reads.

A query of a range evaluates every series at each step; an instant query reads each once, or all samples of its window.
The numbers of series are those of 1,250 nodes with 8 GPUs, 20,000 pods in 5,000 workloads and 200 namespaces. Measured
with Prometheus 2.42 on such a fleet: 61 steps over 1,250 series took 0.16 s of CPU time, which is 2 µs for each.
"""

import re

import promql_parser
import pytest

from dashboards import DASHBOARDS
from dashboards.style import Dashboard
from tests.dashboards.rendered import RENDERED, panels, with_windows
from tests.promql import walk

SERIES = {"global": 10, "cluster": 10, "model": 100, "namespace": 200, "node": 1_250, "workload": 5_000, "pod": 20_000}
"""By the level of a recorded series."""
BY_BEGINNING = {
    "gpugauge_node": 2_500,
    "gpugauge_pod": 20_000,
    "gpugauge_gpu_pod": 20_000,
    "gpugauge_watch": 20,
    "ALERTS": 250,
    "prometheus_": 60,
}
"""By the beginning of the name; every other series of the watcher is per namespace, resource and reason."""
FEW = 1_500
CHOSEN = 64
"""Series of one node, or of the nodes of a workload, for which variables are chosen."""
IDLE_PODS = 1_000
SMALL = {
    "pod:gpu_idle_devices:count15m": IDLE_PODS,
    "workload:gpu_idle_devices:count15m": IDLE_PODS,
    "cluster:gpu_pending_devices_by_reason:sum": 100,
    "ALERTS": 200,
    "ALERTS_FOR_STATE": 200,
    "gpugauge_xid_last_timestamp_seconds": 100,
    "gpugauge_watch_last_sync_timestamp_seconds": 20,
    "prometheus_rule_group_last_duration_seconds": 40,
    "prometheus_rule_evaluation_failures_total": 40,
    "prometheus_rule_group_iterations_missed_total": 40,
}
PENDING = 500
"""The most workloads of which the watcher exposes pending pods."""

SECONDS_PER_SERIES_AND_STEP = 2e-6
SECONDS_PER_SAMPLE_OF_A_WINDOW = 5e-8
HOURS = {"now-1h": 1, "now-3h": 3, "now-6h": 6, "now-24h": 24, "now-7d": 168}
PIXELS = 900
"""As many steps a graph has at most; the smallest step is a minute."""
LIMIT_SECONDS, LIMIT_OF_A_DAY_SECONDS = 2.0, 10.0

OF_A_FLEET = ("gpu-fleet", "gpu-capacity", "gpu-efficiency", "gpu-namespace", "gpu-node", "gpu-workload")
CHECKED = pytest.mark.parametrize(
    "dashboard", [each for each in DASHBOARDS if each.uid in OF_A_FLEET], ids=lambda each: each.uid
)
"""Those that everybody opens. Those for whoever runs exporters and hardware read series of every node on request."""


def series(selector: promql_parser.VectorSelector) -> int:
    """How many series of such a fleet a selector of a dashboard selects."""
    name = selector.name or ""
    matched = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
    chosen = [key for key in ("node", "namespace", "gpu_namespace", "pod") if matched.get(key, "").startswith("$")]
    level = name.partition(":")[0]
    if chosen and level not in {"cluster", "model"}:
        return CHOSEN
    if "pending" in name and level not in {"cluster", "model"}:
        return PENDING
    if name in SMALL:
        return SMALL[name]
    if ":" in name:
        return SERIES[level]
    found = [number for start, number in BY_BEGINNING.items() if name.startswith(start)]
    return found[0] if found else FEW


def cost(expression: str, *, instant: bool, hours: float) -> float:
    """CPU seconds of a query over so many hours."""
    minutes = hours * 60
    known = expression.replace("$__rate_interval", "5m")
    text = with_windows(known, f"{round(minutes)}m", f"{max(1, round(minutes / PIXELS))}m")
    steps = 1 if instant else min(minutes, PIXELS)
    total = 0.0
    parsed = promql_parser.parse(text)
    for node in walk(parsed):
        if isinstance(node, promql_parser.VectorSelector):
            total += series(node) * steps * SECONDS_PER_SERIES_AND_STEP
        elif isinstance(node, promql_parser.MatrixSelector):
            name = node.vector_selector.name or ""
            samples = node.range.total_seconds() / (300 if re.search("5m$", name) else 60)
            total += series(node.vector_selector) * samples * steps * SECONDS_PER_SAMPLE_OF_A_WINDOW
        elif isinstance(node, promql_parser.SubqueryExpr):
            evaluations = node.range.total_seconds() / node.step.total_seconds()
            inner = [each for each in walk(node.expr) if isinstance(each, promql_parser.VectorSelector)]
            total += sum(series(each) for each in inner) * evaluations * steps * SECONDS_PER_SERIES_AND_STEP
    return total


def first_view(dashboard: Dashboard, hours: float) -> dict[str, float]:
    """CPU seconds of each query of the panels outside collapsed rows."""
    shown = [panel for panel in RENDERED[dashboard.uid]["panels"] if panel["type"] != "row"]
    return {
        f"{panel['title']} {target['refId']}": cost(target["expr"], instant=target["instant"], hours=hours)
        for panel in shown
        for target in panel["targets"]
    }


def dearest(costs: dict[str, float]) -> str:
    rows = sorted(costs.items(), key=lambda item: -item[1])[:8]
    return "\n".join([f"{sum(costs.values()):.2f} s", *(f"{seconds:7.3f} {title}" for title, seconds in rows)])


@CHECKED
def test_the_first_view_is_cheap_at_its_default_range(dashboard):
    costs = first_view(dashboard, HOURS[dashboard.since])
    assert sum(costs.values()) <= LIMIT_SECONDS, dearest(costs)


@CHECKED
def test_a_day_is_not_dear(dashboard):
    costs = first_view(dashboard, 24)
    assert sum(costs.values()) <= LIMIT_OF_A_DAY_SECONDS, dearest(costs)


@CHECKED
def test_a_table_of_a_fleet_is_bounded_in_every_query(dashboard):
    variables = RENDERED[dashboard.uid]["templating"]["list"]
    names = {each["name"] for each in variables if not each.get("includeAll")}
    for panel in panels(RENDERED[dashboard.uid]):
        for target in panel["targets"]:
            if panel["type"] == "table" and not (names & {"node", "namespace"}):
                small = re.search(r"by \((cluster, )?(resource, )?model\b|model:", target["expr"])
                assert "topk(" in target["expr"] or "bottomk(" in target["expr"] or small, panel["title"]
