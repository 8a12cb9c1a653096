"""GPUExporterDown and GPUWatcherDown: who is blind, and who only looks it."""

from alerts import GROUPS
from alerts.rule import RUNBOOK, Alert
from alerts.rulefile import labels_of
from tests.alerts.fleet import always, stored
from tests.alerts.promtool import Scene, run, write_rules, write_test

DOWN, WATCHER = "GPUExporterDown", "GPUWatcherDown"


def _node(scene: Scene, node: str, up: str, *, cluster: str = "", instance: str = "") -> None:
    labels = {"job": "gpugauge-node", "node": node, "instance": instance or f"{node}:9400", "cluster": cluster}
    scene.add("up", {**labels, "pod": f"exporter-{instance}"}, up)


def _watcher(scene: Scene, up: str, *, number: int = 0, cluster: str = "") -> None:
    scene.add("up", {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": cluster}, up)


def _says(scene: Scene, name: str, page: dict[str, str], values: str, *, honor: bool = True) -> None:
    target = {"job": "gpugauge-cluster", "instance": "watcher-0:9410", "namespace": "monitoring", "pod": "watcher-0"}
    scene.add(name, stored(page, target, honor=honor), values)


def _firing(scene: Scene, alert: str, minute: float, by: str, *found: str) -> None:
    chosen = f'alertname="{alert}", alertstate="firing"'
    scene.expect(f"count by ({by}) (ALERTS{{{chosen}}})", minute, *(({by: value}, 1.0) for value in found))


def _passes(tmp_path, *scenes: Scene) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), scenes)
    assert run(path)[path] == ""


def test_an_exporter_that_does_not_answer_for_10_minutes_is_named_by_its_node(tmp_path):
    scene = Scene()
    _node(scene, "node-1", "1x19 0x100")
    _node(scene, "node-2", always(1))
    _node(scene, "node-3", "1x19 0x9 1x100")
    for minute, found in ((15, ()), (19, ()), (21, ("node-1",)), (40, ("node-1",))):
        _firing(scene, DOWN, minute, "node", *found)
    _passes(tmp_path, scene)


def test_a_new_pod_of_the_exporter_does_not_restart_the_alert(tmp_path):
    scene = Scene()
    _node(scene, "node-1", "0x29 stale", instance="10.0.0.1:9400")
    _node(scene, "node-1", "_x31 0x100", instance="10.0.0.2:9400")
    for minute in (12, 15, 16, 20):
        _firing(scene, DOWN, minute, "node", "node-1")
    _passes(tmp_path, scene)


def test_one_of_two_exporters_on_a_node_is_enough(tmp_path):
    scene = Scene()
    _node(scene, "node-1", always(0), instance="10.0.0.1:9400")
    _node(scene, "node-1", always(1), instance="10.0.0.2:9400")
    _firing(scene, DOWN, 30, "node")
    _passes(tmp_path, scene)


def test_a_node_with_gpus_that_no_target_speaks_for_is_named_under_both_honor_labels(tmp_path):
    scenes = []
    for honor in (True, False):
        scene = Scene()
        _node(scene, "node-1", always(1))
        for node, devices in (("node-1", 8), ("node-2", 8), ("node-3", 0)):
            for resource in ("nvidia_com_gpu", "nvidia_com_mig_1g_10gb"):
                page = {"node": node, "resource": resource, "model": "NVIDIA-H100"}
                _says(scene, "gpugauge_node_gpu_allocatable", page, always(devices), honor=honor)
        _firing(scene, DOWN, 9, "node")
        _firing(scene, DOWN, 12, "node", "node-2")
        scenes.append(scene)
    _passes(tmp_path, *scenes)


def test_a_node_that_a_stock_exporter_shows_is_not_blind(tmp_path):
    scene = Scene()
    _says(scene, "gpugauge_node_gpu_allocatable", {"node": "node-1", "resource": "nvidia_com_gpu"}, always(8))
    scene.add("DCGM_FI_DEV_GPU_UTIL", {"Hostname": "node-1", "UUID": "GPU-1", "gpu": "0", "modelName": "T4"}, always(5))
    _firing(scene, DOWN, 30, "node")
    scene.expect(
        "gpu_instance:gpugauge_device:info",
        30,
        (
            {
                "__name__": "gpu_instance:gpugauge_device:info",
                "node": "node-1",
                "UUID": "GPU-1",
                "gpu": "0",
                "model": "T4",
            },
            1.0,
        ),
    )
    _passes(tmp_path, scene)


def test_a_node_under_maintenance_is_expected_to_be_blind(tmp_path):
    scene = Scene()
    _node(scene, "node-1", always(0))
    for node in ("node-1", "node-2"):
        _says(scene, "gpugauge_node_gpu_allocatable", {"node": node, "resource": "nvidia_com_gpu"}, always(8))
        _says(scene, "gpugauge_node_maintenance", {"node": node, "reason": "driver_upgrade"}, always(1))
    _firing(scene, DOWN, 30, "node")
    _passes(tmp_path, scene)


def test_a_watcher_that_does_not_answer_or_is_not_there_is_reported(tmp_path):
    silent, gone, never_there = Scene(), Scene(), Scene()
    _watcher(silent, "1x19 0x100")
    for minute, found in ((15, ()), (19, ()), (21, ("",))):
        _firing(silent, WATCHER, minute, "severity", *("warning" for _ in found))
    _watcher(gone, "1x19 stale")
    _firing(gone, WATCHER, 19, "severity")
    _firing(gone, WATCHER, 21, "severity", "warning")
    _node(never_there, "node-1", always(1))
    _firing(never_there, WATCHER, 12, "severity", "warning")
    _passes(tmp_path, silent, gone, never_there)


def test_one_of_two_replicas_is_enough_and_a_failover_is_silent(tmp_path):
    scene = Scene()
    _watcher(scene, "1x39 0x100", number=0)
    _watcher(scene, "0x38 1x100", number=1)
    for minute in (15, 25, 40):
        _firing(scene, WATCHER, minute, "severity")
    _passes(tmp_path, scene)


def test_each_cluster_needs_its_own_watcher(tmp_path):
    scene = Scene()
    _watcher(scene, always(1), cluster="east")
    _node(scene, "node-1", always(1), cluster="east")
    _node(scene, "node-1", always(1), cluster="west")
    _firing(scene, WATCHER, 20, "cluster", "west")
    _passes(tmp_path, scene)


def test_a_cluster_without_gpugauge_or_gpus_is_silent(tmp_path):
    scene = Scene()
    scene.add("up", {"job": "kubelet", "instance": "node-1:10250"}, always(1))
    for alert in (DOWN, WATCHER):
        _firing(scene, alert, 30, "severity")
    _passes(tmp_path, scene)


def test_the_texts_name_node_and_cluster(tmp_path):
    scene = Scene()
    _node(scene, "node-1", always(0), cluster="west")
    rules = {rule.name: rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)}
    down = {
        "summary": "The GPUs of node node-1 are not seen.",
        "description": (
            "No GPU exporter on node node-1 has answered for 10 minutes: its utilisation, its hardware errors and the "
            "holders of its GPUs are unknown."
        ),
        "runbook_url": f"{RUNBOOK}#gpuexporterdown",
    }
    scene.expect_alerts(DOWN, 12, ({**labels_of(rules[DOWN]), "cluster": "west", "node": "node-1"}, down))
    watcher = {
        "summary": "No GPU watcher answers in cluster west.",
        "description": (
            "No cluster watcher has answered for 10 minutes: pending reasons, owners, classes and opt-outs of GPU pods "
            "are unknown, and alerts that need them are silent."
        ),
        "runbook_url": f"{RUNBOOK}#gpuwatcherdown",
    }
    scene.expect_alerts(WATCHER, 12, ({**labels_of(rules[WATCHER]), "cluster": "west"}, watcher))
    _passes(tmp_path, scene)
