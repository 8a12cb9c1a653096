"""Recorded series per workload: each exclusive device counts once, and only where its activity is known."""

import pytest

from tests.alerts.fleet import FLAVORS, Flavor, Gpu, Node, Pod, always
from tests.alerts.promtool import RuleFixture
from tests.alerts.test_aggregates import NAME, OWN, check, expect

pytestmark = pytest.mark.prometheus


def node_with(fixture: RuleFixture, flavor: Flavor, *gpus: Gpu, name: str = "n") -> tuple[Node, dict[str, str]]:
    """A node with these GPUs, and the labels of the workload of its pod `p`."""
    node = Node(fixture, flavor, name, "c")
    node.up()
    for pod in sorted({pod for gpu in gpus for pod in gpu.pods}):
        node.pod(Pod(pod))
    for number, gpu in enumerate(gpus):
        node.gpu(number, gpu)
    labels = {"cluster": "c", "namespace": node.namespace, "workload": "job-p", "workload_type": "Job"}
    return node, labels


@pytest.mark.parametrize("flavor", FLAVORS, ids=lambda flavor: flavor.name)
def test_the_devices_of_a_workload_are_counted_by_what_they_do(tmp_path, flavor):
    fixture = RuleFixture()
    _, labels = node_with(fixture, flavor, Gpu(always(0.75)), Gpu(always(0)), Gpu(always(0)))
    expect(
        fixture,
        20,
        {"workload:gpu_devices:sum": 3, "workload:gpu_busy:sum": 0.75, "workload:gpu_busy:count": 3},
        **labels,
    )
    by_model = {"model": "NVIDIA-H100", **({"resource": "nvidia_com_gpu"} if flavor.own else {})}
    expect(fixture, 20, {"workload:gpu_idle_devices:count15m": 2}, **labels, **by_model)
    expect(fixture, 20, {"model:gpu_idle_devices:count15m": 2}, cluster="c", **by_model)
    check(tmp_path, fixture)


def test_shared_devices_and_devices_without_a_value_are_allocated_and_neither_busy_nor_idle(tmp_path):
    fixture = RuleFixture()
    _, labels = node_with(fixture, OWN, Gpu(always(0), pods=("p", "q")), Gpu(pods=("p",)))
    fixture.expect('workload:gpu_devices:sum{workload="job-p"}', 20, ({NAME: "workload:gpu_devices:sum", **labels}, 2))
    for name in ("workload:gpu_busy:sum", "workload:gpu_busy:count", "workload:gpu_idle_devices:count15m"):
        fixture.expect(name, 20)
    check(tmp_path, fixture)


def test_an_exporter_that_is_scraped_twice_counts_once_per_workload(tmp_path):
    fixture = RuleFixture()
    _, labels = node_with(fixture, OWN, Gpu(always(0)), Gpu(always(0.5)))
    for series, values in list(fixture.series):
        if "gpugauge_" in series and 'job="gpugauge-node"' in series:
            fixture.series.append((series.replace('job="gpugauge-node"', 'job="second"'), values))
    expect(fixture, 20, {"workload:gpu_devices:sum": 2, "workload:gpu_busy:count": 2}, **labels)
    name = "model:gpu_idle_devices:count15m"
    one = {"cluster": "c", "model": "NVIDIA-H100", "resource": "nvidia_com_gpu"}
    fixture.expect(name, 20, ({NAME: name, **one}, 1))
    check(tmp_path, fixture)
