"""The Helm chart on a real API server: it accepts every object, admits the pods, and gives the rights that are used."""

import json
import subprocess
import urllib.error

import pytest

from exporter.cluster.kubernetes.watching.permissions import LEASE_PARTS, WATCHED
from scripts.permissions import feature
from tests.deploy.helm.chart import CHART, HELM, IMAGE, NEEDS_HELM, NODE, merged, nested, pod, rendered
from tests.deploy.helm.combinations import rows, values
from tests.deploy.operator_schemas import custom_kinds, definition
from tests.deploy.running import running
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.test_rights import OFF, allowed, rights_of

pytestmark = [*NEEDS_HELM, *processes.needs("etcd", "kube-apiserver")]

OF_RIGHTS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
EVERYTHING = merged(IMAGE, nested(rules__adapters__dcgmExporter=True, watcher__replicas=2, dra__enabled=True))
FEATURES = {
    "nothing": ({}, set()),
    "pod metadata": (nested(podMetadata__source="api"), {("", "pods", verb, ()) for verb in ("list", "watch")}),
    "kubelet": (nested(podMetadata__source="kubelet"), {("", "nodes/pods", "get", ())}),
    "DRA": (
        nested(dra__enabled=True),
        {
            *(("resource.k8s.io", "resourceslices", verb, ()) for verb in ("list", "watch")),
            ("resource.k8s.io", "resourceclaims", "get", ()),
        },
    ),
}


def namespace(name, level):
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                "pod-security.kubernetes.io/enforce": level,
                "resource.kubernetes.io/admin-access": "true",
            },
        },
    }


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """An API server with the definitions of the operators."""
    with control_plane(tmp_path_factory.mktemp("plane")) as started:
        started.apply(namespace("gpugauge", "privileged"))
        for kind in custom_kinds():
            given = definition(kind)
            started.apply(given)
            group, names = given["spec"]["group"], given["spec"]["names"]
            version = next(each["name"] for each in given["spec"]["versions"] if each["served"])
            started.until(lambda path=f"/apis/{group}/{version}/{names['plural']}": served(started, path))
        yield started


def served(plane, path):
    try:
        return plane.call("GET", path)
    except urllib.error.HTTPError:
        return None


def test_the_api_server_accepts_every_object_of_every_combination(plane):
    """Once each: rows have most objects in common, and a dashboard is large."""
    accepted = []
    for row in rows():
        for each in rendered(values(row)).values():
            if each not in accepted:
                plane.apply(each, dry_run=True)
                accepted.append(each)
    assert {each["kind"] for each in accepted} > custom_kinds()


def test_helm_installs_upgrades_and_removes_everything(plane, tmp_path):
    """The commands of README, with objects that the API server stores, and Helm's own Secret of the release."""
    command = [HELM, "--kubeconfig", plane.kubeconfig("helm", processes.ADMIN), "--namespace", "gpugauge-installed"]
    everything = tmp_path / "values.json"
    everything.write_text(json.dumps(EVERYTHING))
    image = ["--create-namespace", "--set", "image.repository=registry.example/gpugauge"]
    for verb in (["install", "gpugauge", str(CHART), *image], ["upgrade", "gpugauge", str(CHART), "-f", everything]):
        done = subprocess.run([*command, *verb], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    listed = "/apis/monitoring.coreos.com/v1/namespaces/gpugauge-installed/prometheusrules"
    assert len(plane.items(listed)) == 2
    done = subprocess.run([*command, "uninstall", "gpugauge"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert plane.items(listed) == []


@pytest.mark.parametrize(
    ("level", "given", "admitted"),
    [
        ("privileged", {}, True),
        ("baseline", {}, False),
        ("baseline", nested(restricted=True), True),
        ("restricted", nested(restricted=True), True),
        ("restricted", nested(restricted=True, hostEngine__address="nvidia-dcgm:5555"), True),
        ("restricted", nested(attribution__enabled=False), False),
        ("restricted", nested(attribution__enabled=False, profiling__enabled=False), True),
    ],
)
def test_the_pods_are_admitted_at_the_level_of_the_notes(plane, level, given, admitted):
    name = f"gpugauge-{level}"
    plane.apply(namespace(name, level))
    objects = rendered(given)
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": name},
        "spec": {**pod(objects), "priorityClassName": None},
    }
    if admitted:
        plane.apply(made, dry_run=True)
    else:
        with pytest.raises(urllib.error.HTTPError, match="violates PodSecurity"):
            plane.apply(made, dry_run=True)


@pytest.fixture
def installed(plane):
    """Applies what gives rights, and removes it after the test."""
    paths = []

    def install(given):
        for (kind, _), each in rendered(given).items():
            if kind in OF_RIGHTS:
                plane.apply(each)
                paths.append(f"{plane.path_of(each)}/{each['metadata']['name']}")

    yield install
    for path in paths:
        plane.delete(path, {})


@pytest.fixture(scope="module")
def of_everyone(plane):
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "plain", "namespace": "gpugauge"}})
    return allowed(plane, plane.token("gpugauge", "plain"), "gpugauge")


@pytest.mark.parametrize("name", FEATURES)
def test_the_node_exporter_has_the_rights_of_the_features_that_are_on(plane, installed, of_everyone, name):
    given, rights = FEATURES[name]
    installed(given)
    assert allowed(plane, plane.token("gpugauge", NODE[1]), "gpugauge") - of_everyone == rights
    for path in ("/api/v1/secrets", "/api/v1/namespaces/gpugauge/configmaps", "/api/v1/nodes"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            plane.call("GET", path, token=plane.token("gpugauge", NODE[1]))
        assert refused.value.code == 403


def test_two_replicas_run_with_the_rights_of_the_chart_and_nothing_more(plane, installed, of_everyone):
    installed(nested(watcher__replicas=2))
    token = plane.token("gpugauge", "gpugauge-cluster")
    assert allowed(plane, token, "gpugauge") - of_everyone == rights_of(WATCHED) | rights_of(LEASE_PARTS)
    assert allowed(plane, token, "default") - of_everyone == rights_of(WATCHED)
    kubeconfig = plane.kubeconfig("chart", token)
    arguments = ["cluster", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--interval", "1"]
    with running(arguments, {"GPUGAUGE_LEASE": "gpugauge/gpugauge-cluster"}) as program:
        program.until("/readyz")
        exposition = program.until("/metrics", "gpugauge_leader 1")
        assert not OFF.findall(exposition)
    for method, path in (("POST", "/api/v1/namespaces/gpugauge/pods"), ("GET", "/api/v1/secrets")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            plane.call(method, path, None if method == "GET" else {}, token=token)
        assert refused.value.code == 403


def test_without_the_optional_permissions_the_watcher_is_ready_and_says_what_is_off(plane, installed):
    optional = [part for part in WATCHED if not part.needed]
    installed({"watcher": {"permissions": {feature(part): False for part in optional}}})
    kubeconfig = plane.kubeconfig("least", plane.token("gpugauge", "gpugauge-cluster"))
    arguments = ["cluster", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--interval", "1"]
    with running(arguments, {}) as program:
        program.until("/readyz")
        names = {name for part in optional for name in part.resources}
        plane.until(lambda: set(OFF.findall(program.get("/metrics")[1])) == names)
