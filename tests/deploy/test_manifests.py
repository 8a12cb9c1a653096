"""The manifests are valid, least-privileged, and agree with each other."""

import jsonschema
import kubernetes_validate
import pytest
import yaml

from dashboards import DASHBOARDS
from tests.deploy.manifests import MANIFESTS, ROOT, container, documents, kustomized, one
from tests.deploy.operator_schemas import schema

OPERATOR = {"PodMonitor", "PrometheusRule"}
NATIVE = [each for each in documents() if each["kind"] not in OPERATOR]
CUSTOM = [each for each in documents() if each["kind"] in OPERATOR]
WORKLOADS = [("DaemonSet", "gpugauge-node"), ("Deployment", "gpugauge-cluster")]


def named(document):
    return f"{document['kind']}/{document['metadata']['name']}"


def pod_spec(kind, name):
    return one(kind, name)["spec"]["template"]["spec"]


@pytest.mark.parametrize("document", NATIVE, ids=named)
def test_every_field_is_one_of_kubernetes(document):
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_a_field_that_kubernetes_does_not_have_is_found():
    wrong = {**NATIVE[0], "spek": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("document", CUSTOM, ids=named)
def test_every_field_is_one_of_the_prometheus_operator(document):
    jsonschema.Draft7Validator(schema(document["kind"])).validate(document)


def test_a_field_that_the_prometheus_operator_does_not_have_is_found():
    monitor = one("PodMonitor", "gpugauge-node")
    wrong = {**monitor, "spec": {**monitor["spec"], "podMetricsEndpoint": []}}
    with pytest.raises(jsonschema.ValidationError, match="podMetricsEndpoint"):
        jsonschema.Draft7Validator(schema("PodMonitor")).validate(wrong)


@pytest.mark.parametrize("document", [each for each in documents() if "namespace" in each["metadata"]], ids=named)
def test_every_object_is_in_one_namespace(document):
    assert document["metadata"]["namespace"] == "gpugauge"


@pytest.mark.parametrize(("kind", "name"), WORKLOADS)
def test_a_container_gets_no_more_than_it_needs(kind, name):
    spec, only = pod_spec(kind, name), container(kind, name)
    security = only["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"]["drop"] == ["ALL"]
    assert "privileged" not in security
    seccomp = security.get("seccompProfile") or spec["securityContext"]["seccompProfile"]
    assert seccomp == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert only["resources"]["limits"].keys() == {"memory"}


def test_the_node_exporter_has_one_capability_and_no_token():
    assert container("DaemonSet", "gpugauge-node")["securityContext"]["capabilities"]["add"] == ["SYS_ADMIN"]
    assert container("DaemonSet", "gpugauge-node")["resources"]["limits"]["memory"] == "256Mi"
    assert pod_spec("DaemonSet", "gpugauge-node")["automountServiceAccountToken"] is False


def test_the_watcher_runs_as_an_ordinary_user_without_capabilities():
    security = pod_spec("Deployment", "gpugauge-cluster")["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 65532)
    assert "add" not in container("Deployment", "gpugauge-cluster")["securityContext"]["capabilities"]


def test_the_kubelets_directory_is_mounted_read_only_and_not_its_socket():
    (volume,) = [each for each in pod_spec("DaemonSet", "gpugauge-node")["volumes"] if "hostPath" in each]
    assert volume["hostPath"] == {"path": "/var/lib/kubelet/pod-resources", "type": "Directory"}
    (mount,) = [m for m in container("DaemonSet", "gpugauge-node")["volumeMounts"] if m["name"] == volume["name"]]
    assert mount["readOnly"] is True
    (flag,) = [a for a in container("DaemonSet", "gpugauge-node")["args"] if a.startswith("--pod-resources")]
    assert flag.split("=")[1] == f"{mount['mountPath']}/kubelet.sock"


def test_the_roll_out_updates_a_tenth_of_the_nodes_at_a_time():
    assert one("DaemonSet", "gpugauge-node")["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}


def test_nodes_whose_driver_is_being_upgraded_are_not_selected():
    affinity = pod_spec("DaemonSet", "gpugauge-node")["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    upgrading = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-driver-upgrade"}
    assert not any(matches(term, upgrading) for term in terms)
    assert any(matches(term, {**upgrading, "nvidia.com/gpu.deploy.dcgm-exporter": "true"}) for term in terms)
    assert any(matches(term, {"nvidia.com/gpu.present": "true"}) for term in terms)
    assert not any(matches(term, {"kubernetes.io/os": "linux"}) for term in terms)


def matches(term, labels):
    def matches_rule(rule):
        value = labels.get(rule["key"])
        return {
            "In": value in rule.get("values", ()),
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[rule["operator"]]

    return all(matches_rule(rule) for rule in term["matchExpressions"])


@pytest.mark.parametrize(("kind", "name"), WORKLOADS)
def test_a_workload_selects_its_own_pods_and_a_monitor_scrapes_them(kind, name):
    workload, monitor = one(kind, name), one("PodMonitor", name)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in container(kind, name)["ports"]]
    assert (endpoint["honorLabels"], endpoint["interval"], endpoint["path"]) == (True, "30s", "/metrics")


def test_targets_carry_the_job_names_that_rules_read_and_the_node_on_node_targets_alone():
    targets = {}
    for _, name in WORKLOADS:
        (endpoint,) = one("PodMonitor", name)["spec"]["podMetricsEndpoints"]
        targets[name] = {each["targetLabel"]: each for each in endpoint["relabelings"]}
    assert targets["gpugauge-node"]["job"]["replacement"] == "gpugauge-node"
    assert targets["gpugauge-cluster"]["job"]["replacement"] == "gpugauge-cluster"
    assert targets["gpugauge-node"]["node"]["sourceLabels"] == ["__meta_kubernetes_pod_node_name"]
    assert targets["gpugauge-cluster"].keys() == {"job"}


@pytest.mark.parametrize(("kind", "name"), WORKLOADS)
def test_the_service_account_exists(kind, name):
    assert one("ServiceAccount", pod_spec(kind, name)["serviceAccountName"])


def test_only_the_watcher_has_rights_and_only_to_read():
    subjects = one("ClusterRoleBinding", "gpugauge-cluster")["subjects"]
    assert [each["name"] for each in subjects] == ["gpugauge-cluster"]
    for rule in one("ClusterRole", "gpugauge-cluster")["rules"]:
        assert set(rule["verbs"]) <= {"get", "list", "watch"}
        assert "secrets" not in rule["resources"]
        assert "*" not in rule["resources"] + rule["apiGroups"]


def test_the_whole_renders_with_a_config_map_for_each_dashboard():
    rendered = kustomized(ROOT / "deploy")
    assert {named(each) for each in documents()} <= {named(each) for each in rendered}
    maps = [each for each in rendered if each["kind"] == "ConfigMap"]
    assert {name for each in maps for name in each["data"]} == {f"{dashboard.uid}.json" for dashboard in DASHBOARDS}
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["namespace"] == "gpugauge"
        for name, text in each["data"].items():
            assert text == (ROOT / "deploy/generated/dashboards" / name).read_text()


def test_the_plain_set_needs_no_custom_resources():
    rendered = {named(each) for each in kustomized(MANIFESTS)}
    assert rendered == {named(each) for each in NATIVE}


def test_every_dashboard_and_manifest_is_listed_for_kustomize():
    whole = yaml.safe_load((ROOT / "deploy/kustomization.yaml").read_text())
    listed = [name for each in whole["configMapGenerator"] for name in each["files"]]
    assert listed == [f"generated/dashboards/{dashboard.uid}.json" for dashboard in DASHBOARDS]
    plain = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    files = {path.name for path in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml", "monitors.yaml"}
    assert set(plain["resources"]) == files
