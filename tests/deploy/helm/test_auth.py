"""kube-rbac-proxy before each program: where each listens, who has the token, what monitors send, and which rights."""

import pytest

from exporter.cli import parse
from tests.deploy.helm.chart import NEEDS_HELM, NODE, WATCHER, container, merged, nested, pod, rendered
from tests.deploy.helm.combinations import AUTH
from tests.deploy.helm.test_privileges import privileges, rights

pytestmark = NEEDS_HELM

TLS = nested(tls__enabled=True, tls__existingSecret="s")
VALUES = merged(TLS, {"auth": AUTH})
OF_FILE = merged(VALUES, nested(monitoring__discovery="serviceMonitor", auth__prometheus__tokenSecret__name=""))
PORTS = {NODE: 9400, WATCHER: 9410}
REVIEWS = {
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


def proxy(objects, workload):
    (found,) = [each for each in pod(objects, workload)["containers"] if each["name"] == "auth-proxy"]
    return found


def flags(found):
    return dict(each.removeprefix("--").split("=", 1) for each in found["args"])


def mounted(found):
    return {each["mountPath"] for each in found["volumeMounts"]}


@pytest.mark.parametrize("workload", PORTS)
def test_the_program_listens_on_loopback_and_the_proxy_in_its_place(workload):
    objects = rendered(VALUES)
    program, before = container(objects, workload), proxy(objects, workload)
    given = parse(program["args"], {})
    assert (given.address, given.health_address, given.web_config_file) == ("127.0.0.1:9480", ":9481", "")
    assert flags(before)["upstream"] == f"http://{given.address}/"
    assert flags(before)["allow-paths"] == "/metrics"
    (port,) = before["ports"]
    assert (port["name"], f":{port['containerPort']}") == ("metrics", flags(before)["secure-listen-address"])
    assert port["containerPort"] == PORTS[workload]


@pytest.mark.parametrize("workload", PORTS)
def test_probes_ask_the_port_of_the_health_endpoints_without_tls(workload):
    program = container(rendered(VALUES), workload)
    (port,) = program["ports"]
    assert (port["name"], port["containerPort"]) == ("health", 9481)
    for probe in ("livenessProbe", "readinessProbe"):
        assert program[probe]["httpGet"]["port"] == "health"
        assert "scheme" not in program[probe]["httpGet"]


@pytest.mark.parametrize("workload", PORTS)
def test_the_proxy_alone_has_the_certificate_and_its_token_and_no_privilege(workload):
    objects, plain = rendered(VALUES), rendered(TLS)
    before = proxy(objects, workload)
    assert mounted(before) == {"/etc/gpugauge/tls", TOKENS}
    assert not mounted(before) & mounted(container(objects, workload))
    assert {flags(before)["tls-cert-file"], flags(before)["tls-private-key-file"]} == {
        "/etc/gpugauge/tls/tls.crt",
        "/etc/gpugauge/tls/tls.key",
    }
    assert before["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod(objects, workload)["securityContext"]["fsGroup"] == 65532
    assert privileges(objects, workload) == privileges(plain, workload)
    assert rights(objects, workload) == rights(plain, workload) | REVIEWS


def test_prometheus_may_get_metrics_and_nothing_else():
    objects = rendered(VALUES)
    assert objects["ClusterRole", "gpugauge-metrics-reader"]["rules"] == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]
    subjects = objects["ClusterRoleBinding", "gpugauge-metrics-reader"]["subjects"]
    assert subjects == [{"kind": "ServiceAccount", "name": "p", "namespace": "m"}]
    without = merged(VALUES, nested(auth__prometheus__serviceAccount={"name": "", "namespace": ""}))
    assert ("ClusterRoleBinding", "gpugauge-metrics-reader") not in rendered(without)
    assert not [kind for kind, name in rendered(merged(VALUES, nested(rbac__create=False))) if "Role" in kind]


@pytest.mark.parametrize("name", ["gpugauge-node", "gpugauge-cluster"])
def test_monitors_send_the_token_over_tls(name):
    (of_secret,) = rendered(VALUES)["PodMonitor", name]["spec"]["podMetricsEndpoints"]
    (of_file,) = rendered(OF_FILE)["ServiceMonitor", name]["spec"]["endpoints"]
    assert of_secret["authorization"] == {"type": "Bearer", "credentials": {"name": "t", "key": "token"}}
    assert of_file["bearerTokenFile"] == f"{TOKENS}/token"
    assert [each["scheme"] for each in (of_secret, of_file)] == ["https", "https"]
    (plain,) = rendered(TLS)["PodMonitor", name]["spec"]["podMetricsEndpoints"]
    assert not {"authorization", "bearerTokenFile"} & plain.keys()
