"""Sums per node, model, namespace and cluster: nothing counts twice, whichever exporters run."""

import pytest

from alerts import ADAPTERS, GROUPS
from tests.alerts.fleet import FLAVORS, Flavor, Gpu, Node, Pod, always, stored
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

OWN, STOCK = FLAVORS[0], FLAVORS[4]
NAME = "__name__"


def check(tmp_path, *fixtures, groups=GROUPS):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, groups), fixtures, groups)
    assert run(path)[path] == ""


def expect(fixture: RuleFixture, minute: float, values: dict[str, float], **labels: str) -> None:
    """Expect each recorded series to have one value, with exactly these labels."""
    for name, value in values.items():
        fixture.expect(name, minute, ({NAME: name, **labels}, value))


def node_of(fixture: RuleFixture, flavor: Flavor, *gpus: Gpu, name: str = "n") -> Node:
    node = Node(fixture, flavor, name, "c")
    node.up()
    for pod in sorted({pod for gpu in gpus for pod in gpu.pods}):
        node.pod(Pod(pod))
    for number, gpu in enumerate(gpus):
        node.gpu(number, gpu)
    return node


@pytest.mark.parametrize("flavor", FLAVORS[:3], ids=lambda flavor: flavor.name)
def test_devices_of_a_node_are_counted_by_state(tmp_path, flavor):
    fixture = RuleFixture()
    gpus = (
        Gpu(always(0.75)),
        Gpu(always(0), pods=("q",)),
        Gpu(always(0.5), pods=("p", "q")),
        Gpu(always(0), pods=()),
        Gpu(always(0.125), allocation_unknown=True, pods=()),
        Gpu(pods=("r",)),
    )
    node = node_of(fixture, flavor, *gpus)
    of_node = {
        "node:gpus:count": 6,
        "node:gpus_allocated:count": 4,
        "node:gpus_unallocated:count": 1,
        "node:gpu_devices:count": 6,
        "node:gpu_devices_allocated:count": 4,
        "node:gpu_devices_unallocated:count": 1,
        "node:gpu_idle_devices:count": 1,
        "node:gpu_idle_devices:count15m": 1,
        "node:gpu_busy:sum": 1.375,
        "node:gpu_busy:count": 5,
        "node:gpu_allocated_busy:sum": 1.25,
        "node:gpu_allocated_busy:count": 3,
    }
    expect(fixture, 20, of_node, cluster="c", node=node.node)
    expect(
        fixture,
        20,
        {name.replace("node:", "cluster:"): value for name, value in of_node.items() if ":gpu_busy" not in name},
        cluster="c",
    )
    expect(fixture, 20, {"node:gpu_model:info": 1}, cluster="c", node=node.node, model="NVIDIA-H100")
    expect(fixture, 20, {"model:gpus:count": 6, "model:gpu_busy:sum": 1.375}, cluster="c", model="NVIDIA-H100")
    of_namespace = {
        "namespace:gpu_pods:count": 3,
        "namespace:gpu_devices:sum": 5,
        "namespace:gpu_busy:sum": 0.75,
        "namespace:gpu_busy:count": 2,
        "namespace:gpu_idle_devices:count15m": 1,
    }
    expect(fixture, 20, of_namespace, cluster="c", namespace=node.namespace)
    check(tmp_path, fixture)


def test_mig_devices_are_devices_and_their_gpu_is_counted_once(tmp_path):
    fixture = RuleFixture()
    gpus = [Gpu(always(0.5), gi=gi, index=0, pods=pods) for gi, pods in (("1", ("p",)), ("2", ()), ("3", ("q",)))]
    node = node_of(fixture, OWN, *gpus)
    expect(
        fixture,
        20,
        {
            "node:gpus:count": 1,
            "node:gpus_allocated:count": 1,
            "node:gpus_unallocated:count": 0,
            "node:gpu_devices:count": 3,
            "node:gpu_devices_allocated:count": 2,
            "node:gpu_devices_unallocated:count": 1,
            "node:gpu_busy:sum": 1.5,
        },
        cluster="c",
        node=node.node,
    )
    check(tmp_path, fixture)


@pytest.mark.parametrize("stock", [flavor for flavor in FLAVORS if not flavor.own], ids=lambda flavor: flavor.name)
def test_a_half_migrated_fleet_counts_every_gpu_once_and_has_one_spelling_of_the_model(tmp_path, stock):
    fixture = RuleFixture()
    both = node_of(
        fixture, OWN, Gpu(always(0.5), second_flavor=stock), Gpu(always(0.5), pods=(), second_flavor=stock), name="both"
    )
    old = node_of(fixture, stock, Gpu(always(0.25)), Gpu(always(0.25), pods=()), name="old")
    counted = {"node:gpus:count": 2, "node:gpus_allocated:count": 1}
    for name, value in counted.items():
        fixture.expect(
            name,
            20,
            *(
                ({NAME: name, "cluster": "c", "node": each.node}, number)
                for each, number in ((both, value), (old, value))
            ),
        )
    fixture.expect(
        "node:gpus_unallocated:count", 20, ({NAME: "node:gpus_unallocated:count", "cluster": "c", "node": both.node}, 1)
    )
    expect(fixture, 20, {"model:gpus:count": 4, "model:gpu_busy:sum": 1.5}, cluster="c", model="NVIDIA-H100")
    expect(fixture, 20, {"cluster:gpus:count": 4, "cluster:gpus_unallocated:count": 1}, cluster="c")
    check(tmp_path, fixture)


def test_a_gpu_whose_stock_exporter_calls_its_own_pod_the_host_is_counted_once(tmp_path):
    """Of two exporters on the node, the stock one knows no name of the node; where its target has one, that counts."""
    fixture = RuleFixture()
    node = node_of(fixture, OWN, Gpu(always(0.5)))
    device = {
        "UUID": f"GPU-{node.namespace}-0",
        "Hostname": "dcgm-exporter-x7k2",
        "gpu": "0",
        "modelName": "NVIDIA H100",
    }
    alone = {"UUID": "GPU-alone", "Hostname": "dcgm-exporter-9wxyz", "gpu": "0", "modelName": "NVIDIA H100"}
    target = {"job": "dcgm-exporter", "instance": "10.0.0.1:9400", "cluster": "c"}
    fixture.add("DCGM_FI_DEV_GPU_UTIL", {**device, **target}, always(50))
    fixture.add("DCGM_FI_DEV_GPU_UTIL", {**alone, **target, "node": "node-alone"}, always(50))
    name = "node:gpus:count"
    fixture.expect(name, 20, *(({NAME: name, "cluster": "c", "node": each}, 1) for each in (node.node, "node-alone")))
    check(tmp_path, fixture)


def test_an_exporter_that_is_scraped_twice_counts_once(tmp_path):
    fixture = RuleFixture()
    node = node_of(fixture, OWN, Gpu(always(0.5)), Gpu(always(0), pods=("q",)))
    for series, values in list(fixture.series):
        if "gpugauge_" in series and 'job="gpugauge-node"' in series:
            fixture.series.append((series.replace('job="gpugauge-node"', 'job="second"'), values))
    values = {
        "node:gpus:count": 2,
        "node:gpu_busy:sum": 0.5,
        "node:gpu_busy:count": 2,
        "node:gpu_devices_allocated:count": 2,
    }
    expect(fixture, 20, values, cluster="c", node=node.node)
    expect(
        fixture,
        20,
        {"namespace:gpu_devices:sum": 2, "namespace:gpu_busy:count": 2},
        cluster="c",
        namespace=node.namespace,
    )
    check(tmp_path, fixture)


def test_a_node_with_several_models_is_in_the_row_mixed(tmp_path):
    fixture = RuleFixture()
    for uuid, model in (("GPU-1", "NVIDIA-T4"), ("GPU-2", "NVIDIA-H100")):
        labels = {"UUID": uuid, "node": "n1", "model": model, "cluster": "c"}
        fixture.add("gpugauge_device_info", labels, always(1))
        fixture.add("gpugauge_gpu_power_watts", {"UUID": uuid, "node": "n1", "cluster": "c"}, always(100))
    expect(fixture, 5, {"model:gpus:count": 2, "model:gpu_power_watts:sum": 200}, cluster="c", model="mixed")
    check(tmp_path, fixture)


def test_nothing_is_recorded_of_a_device_of_our_own_exporter(tmp_path):
    fixture = RuleFixture()
    node_of(fixture, OWN, Gpu(always(0.5)))
    fixture.expect('count({__name__=~".+:.+:.+", UUID!=""})', 20)
    fixture.expect('count({adapter!=""})', 20)
    check(tmp_path, fixture)


def test_the_rules_for_our_own_exporter_need_no_adapter(tmp_path):
    fixture = RuleFixture()
    node = node_of(fixture, OWN, Gpu(always(0.5)))
    expect(fixture, 20, {"pod:gpu_busy:ratio": 0.5}, cluster="c", namespace=node.namespace, pod="p")
    check(tmp_path, fixture, groups=tuple(group for group in GROUPS if group not in ADAPTERS))


def test_the_model_of_a_stock_exporter_is_spelled_as_ours(tmp_path):
    fixture = RuleFixture()
    target = {"job": "dcgm-exporter", "instance": "n:9400"}
    names = {
        "NVIDIA RTX PRO 6000 Blackwell Server Edition": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        "Tesla T4": "Tesla-T4",
        "A100": "A100",
    }
    for number, name in enumerate(names):
        exposed = {"UUID": f"GPU-{number}", "hostname": f"n{number}", "modelName": name, "gpu": "0"}
        fixture.add("DCGM_FI_DEV_GPU_TEMP", stored(exposed, target, honor=True), always(40))
    found = [({"node": f"n{number}", "model": model}, 1.0) for number, model in enumerate(names.values())]
    fixture.expect("max by (node, model) (gpugauge_device_info)", 5, *found)
    check(tmp_path, fixture)
