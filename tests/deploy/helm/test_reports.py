"""What users of other charts reported, by the number of the report."""

import itertools

import pytest

from tests.deploy.helm.chart import NEEDS_HELM, NODE, WATCHER, container, nested, pod, refused, rendered
from tests.deploy.test_manifests import matches

pytestmark = NEEDS_HELM

OPERATOR = "nvidia.com/gpu.deploy.dcgm-exporter"
PATHS = ("podMonitor", "serviceMonitor", "annotations")


def terms(objects):
    affinity = pod(objects)["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def selected(labels):
    return any(matches(term, labels) for term in terms(rendered()))


def tolerated(objects, taint):
    return any(
        each["key"] == taint["key"] and (each["operator"] == "Exists" or each["value"] == taint["value"])
        for each in pod(objects)["tolerations"]
    )


@pytest.mark.parametrize(
    "taint",
    [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoExecute"},
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
    ],
)
def test_report_48_taints_of_gpu_nodes_are_tolerated(taint):
    assert tolerated(rendered(), taint)
    assert not tolerated(rendered(), {"key": "sku", "value": "other"})


@pytest.mark.parametrize(
    "labels",
    [
        {OPERATOR: "true", "nvidia.com/gpu.present": "true"},
        {f"{OPERATOR}-dra": "true", "nvidia.com/gpu.present": "true"},
        {"nvidia.com/gpu.present": "true"},
        {"feature.node.kubernetes.io/pci-10de.present": "true"},
        {"feature.node.kubernetes.io/pci-0302_10de.present": "true"},
        {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
        {"k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"},
        {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"},
        {"kubernetes.azure.com/accelerator": "nvidia"},
    ],
)
def test_report_48_nodes_with_gpus_are_selected_until_their_driver_is_upgraded(labels):
    assert selected(labels)
    key = next((key for key in labels if key.startswith(OPERATOR)), OPERATOR)
    assert not selected({**labels, key: "paused-for-driver-upgrade"})


def test_report_48_other_nodes_are_not_selected():
    assert not selected({"kubernetes.io/os": "linux"})
    assert not selected({"karpenter.k8s.aws/instance-gpu-manufacturer": "amd"})


def test_report_48_the_runtime_class_can_be_set_and_is_not_without_a_value():
    assert pod(rendered(nested(node__runtimeClassName="nvidia")))["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in pod(rendered())


def test_report_50_labels_reach_monitors_and_rules():
    wanted = {"release": "kube-prometheus-stack"}
    values = nested(monitoring__labels=wanted, rules__adapters__dcgmExporter=True, alertmanagerConfig__enabled=True)
    for discovery in PATHS[:2]:
        objects = rendered({**values, "monitoring": {"labels": wanted, "discovery": discovery}})
        custom = [each for each in objects.values() if each["apiVersion"].startswith("monitoring.coreos.com")]
        assert len(custom) == 5
        for each in custom:
            assert wanted.items() <= each["metadata"]["labels"].items()


def test_report_50_a_timeout_above_the_interval_is_one_message():
    message = refused(nested(image__repository="x", monitoring__interval="15s", monitoring__scrapeTimeout="30s"))
    assert "monitoring.scrapeTimeout: 30s is longer than monitoring.interval: 15s" in message


@pytest.mark.parametrize(
    ("interval", "timeout", "expected"),
    [("30s", "", "10s"), ("5s", "", "5s"), ("1m", "45s", "45s"), ("500ms", "", "500ms"), ("10s", "10s", "10s")],
)
def test_report_50_the_timeout_of_an_interval_is_valid(interval, timeout, expected):
    monitor = rendered(nested(monitoring__interval=interval, monitoring__scrapeTimeout=timeout))["PodMonitor", NODE[1]]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == (interval, expected)


def ways(objects, workload):
    """How Prometheus finds the pods of a workload: one text for each way."""
    template = objects[workload]["spec"]["template"]["metadata"]
    found = ["annotations"] * (template.get("annotations", {}).get("prometheus.io/scrape") == "true")
    services = [each for (kind, _), each in objects.items() if kind == "Service"]
    chosen = [each for each in services if each["spec"]["selector"].items() <= template["labels"].items()]
    for (kind, _), each in objects.items():
        labels = each["spec"]["selector"]["matchLabels"].items() if kind.endswith("Monitor") else None
        if kind == "PodMonitor" and labels <= template["labels"].items():
            found.append(kind)
        if kind == "ServiceMonitor":
            found += [kind for service in chosen if labels <= service["metadata"]["labels"].items()]
    found += [
        "annotated Service" for each in chosen if "prometheus.io/scrape" in each["metadata"].get("annotations", {})
    ]
    return found


@pytest.mark.parametrize(
    ("discovery", "service", "secure", "replicas"), list(itertools.product((*PATHS, "none"), (0, 1), (0, 1), (1, 2)))
)
def test_report_51_there_is_exactly_one_way_to_each_pod(discovery, service, secure, replicas):
    tls = nested(tls__enabled=True, tls__existingSecret="s") if secure else {}
    values = nested(monitoring__discovery=discovery, service__enabled=bool(service), watcher__replicas=replicas)
    objects = rendered({**values, **tls})
    for workload in (NODE, WATCHER):
        assert len(ways(objects, workload)) == (discovery != "none")


def test_report_51_a_service_leads_to_the_exporter_of_the_same_node():
    service = rendered(nested(service__enabled=True))["Service", NODE[1]]
    assert service["spec"]["internalTrafficPolicy"] == "Local"


@pytest.mark.parametrize("discovery", PATHS[:2])
def test_report_30_monitors_honor_labels_and_report_31_name_the_node(discovery):
    objects = rendered(nested(monitoring__discovery=discovery))
    kind, key = ("PodMonitor", "podMetricsEndpoints") if discovery == "podMonitor" else ("ServiceMonitor", "endpoints")
    (node,), (cluster,) = (objects[kind, name]["spec"][key] for name in (NODE[1], WATCHER[1]))
    assert (node["honorLabels"], cluster["honorLabels"]) == (True, True)
    assert [each["targetLabel"] for each in node["relabelings"]] == ["job", "node"]
    assert [each["targetLabel"] for each in cluster["relabelings"]] == ["job"]
    (variable,) = [each for each in container(objects)["env"] if each["name"] == "NODE_NAME"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_report_56_the_memory_limit_is_the_one_that_tests_measure_against():
    assert container(rendered())["resources"]["limits"] == {"memory": "256Mi"}


def test_report_57_profiling_adds_one_capability_and_everything_else_is_dropped():
    plain, without = (container(rendered(each)) for each in ({}, nested(profiling__enabled=False)))
    assert plain["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert without["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {**plain, "securityContext": 0} == {**without, "securityContext": 0}


def test_report_60_a_network_policy_allows_the_metrics_port_alone_and_those_who_are_named():
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    objects = rendered(nested(networkPolicy__enabled=True, networkPolicy__from=peers))
    for name in (NODE[1], WATCHER[1]):
        policy = objects["NetworkPolicy", name]["spec"]
        assert policy["policyTypes"] == ["Ingress"]
        assert policy["ingress"] == [{"ports": [{"port": "metrics", "protocol": "TCP"}], "from": peers}]
    assert not [kind for kind, _ in rendered() if kind == "NetworkPolicy"]


def test_report_60_no_role_has_a_wildcard_or_secrets_whatever_is_on():
    on = nested(podMetadata__source="api", dra__enabled=True, watcher__replicas=2, auditLog__enabled=True)
    roles = [each for (kind, _), each in rendered(on).items() if kind in {"Role", "ClusterRole"}]
    assert len(roles) == 4
    for rule in itertools.chain.from_iterable(each["rules"] for each in roles):
        assert not {"*", "secrets"} & {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
