"""What each value of the chart adds to the privileges of the programs, and nothing beside it."""

import pytest

from exporter.cluster.kubernetes.watching.permissions import EXPLAINED, LEASE_PARTS, WATCHED
from scripts.permissions import feature
from tests.deploy.helm.chart import NEEDS_HELM, NODE, WATCHER, container, nested, pod, rendered

pytestmark = NEEDS_HELM

CLAIMS = {
    ("resource.k8s.io", "resourceslices", "list"),
    ("resource.k8s.io", "resourceslices", "watch"),
    ("resource.k8s.io", "resourceclaims", "get"),
}
PODS = "/var/lib/kubelet/pod-resources"
DEFAULT = {"capability SYS_ADMIN", "user 0", f"read {PODS}"}


def privileges(objects, workload=NODE):
    """Everything that a program may do beyond a pod of Pod Security's level "restricted", as texts."""
    spec, only = pod(objects, workload), container(objects, workload)
    security = {**spec.get("securityContext", {}), **only["securityContext"]}
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"]["drop"] == ["ALL"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"privileged", "procMount", "seLinuxOptions"} & security.keys()
    found = {f"capability {name}" for name in security["capabilities"].get("add", ())}
    found |= {name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)}
    if security["runAsUser"] == 0:
        found.add("user 0")
    else:
        assert security["runAsNonRoot"] is True
    if spec["automountServiceAccountToken"]:
        found.add("token")
    paths = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
    mounts = {each["name"]: each.get("readOnly", False) for each in only["volumeMounts"]}
    return found | {f"{'read' if mounts[name] else 'write'} {path}" for name, path in paths.items()}


def rights(objects, workload=NODE):
    """What the service account of a program may do, as (group, resource, verb)."""
    account = pod(objects, workload)["serviceAccountName"]
    bound = [
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for (kind, _), each in objects.items()
        if kind.endswith("RoleBinding") and account in [subject["name"] for subject in each["subjects"]]
    ]
    return {
        (group, resource, verb)
        for role in bound
        for rule in objects[role]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("values", "added", "removed"),
    [
        ({}, set(), set()),
        (nested(profiling__enabled=False), set(), {"capability SYS_ADMIN"}),
        (nested(source="nvml"), set(), {"capability SYS_ADMIN"}),
        (nested(source="dcgm"), set(), set()),
        (nested(hostEngine__address="nvidia-dcgm:5555"), set(), {"capability SYS_ADMIN"}),
        (nested(hostEngine__address="unix:///run/dcgm/s"), {"write /run/dcgm"}, {"capability SYS_ADMIN"}),
        (nested(attribution__enabled=False), set(), {f"read {PODS}"}),
        (nested(attribution__enabled=False, source="nvml"), set(), DEFAULT),
        (nested(restricted=True), set(), DEFAULT),
        (nested(podMetadata__source="api"), {"token"}, set()),
        (nested(podMetadata__source="kubelet"), {"token"}, set()),
        (nested(dra__enabled=True), {"token"}, set()),
        (nested(dra__adminClaim__enabled=True), set(), set()),
        (nested(processMetrics__enabled=True), {"hostPID", "read /var/log/containers"}, set()),
        (nested(auditLog__enabled=True, auditLog__hostPath="/srv/a"), {"write /srv/a"}, set()),
        (nested(stateFile__enabled=True), {"write /var/lib/gpugauge"}, set()),
        (nested(kubelet__root="/k"), {"read /k/pod-resources"}, {f"read {PODS}"}),
        (nested(counters__extra="x", networkPolicy__enabled=True, service__enabled=True), set(), set()),
        (nested(tls__enabled=True, tls__existingSecret="s"), set(), set()),
    ],
)
def test_a_value_adds_exactly_the_privileges_that_it_needs(values, added, removed):
    assert privileges(rendered(values)) == DEFAULT - removed | added


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, set()),
        (nested(auditLog__enabled=True, stateFile__enabled=True, processMetrics__enabled=True), set()),
        (nested(podMetadata__source="api"), {("", "pods", "list"), ("", "pods", "watch")}),
        (nested(podMetadata__source="kubelet"), {("", "nodes/pods", "get")}),
        (nested(dra__enabled=True), CLAIMS),
        (nested(dra__adminClaim__enabled=True), set()),
        (nested(dra__enabled=True, podMetadata__source="api"), {*CLAIMS, ("", "pods", "list"), ("", "pods", "watch")}),
        (nested(dra__enabled=True, rbac__create=False), set()),
    ],
)
def test_the_node_exporter_has_exactly_the_rights_of_the_features_that_are_on(values, expected):
    assert rights(rendered(values)) == expected


def of(parts):
    return {(part.group, resource, verb) for part in parts for resource in part.resources for verb in part.verbs}


def test_the_watcher_has_a_token_the_rights_of_the_table_and_no_other_privilege():
    assert privileges(rendered(), WATCHER) == {"token"}
    assert rights(rendered(), WATCHER) == of(WATCHED)
    several = rendered(nested(watcher__replicas=2))
    assert privileges(several, WATCHER) == {"token"}
    assert rights(several, WATCHER) == of(WATCHED) | of(LEASE_PARTS)


@pytest.mark.parametrize("part", [each for each in WATCHED if not each.needed], ids=lambda part: part.name)
def test_a_permission_of_the_watcher_goes_with_its_value(part):
    without = rendered({"watcher": {"permissions": {feature(part): False}}})
    assert rights(without, WATCHER) == of(each for each in WATCHED if each is not part)


def test_the_role_for_explain_is_optional_has_the_rights_of_the_table_and_is_bound_to_nobody():
    name = ("ClusterRole", "gpugauge-explain")
    assert name not in rendered()
    objects = rendered(nested(explainRole__create=True, watcher__enabled=False))
    assert objects.keys() - rendered(nested(watcher__enabled=False)).keys() == {name}
    given = [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in objects[name]["rules"]]
    assert given == [([part.group], list(part.resources), list(part.verbs)) for part in EXPLAINED]


def test_the_lease_that_may_be_written_is_the_one_that_is_kept():
    objects = rendered(nested(watcher__replicas=3, fullnameOverride="gpus"))
    workload = ("Deployment", "gpus-cluster")
    (lease,) = [each["value"] for each in container(objects, workload)["env"] if each["name"] == "GPUGAUGE_LEASE"]
    named = [rule["resourceNames"] for rule in objects["Role", "gpus-cluster-lease"]["rules"] if len(rule) == 4]
    assert [lease.partition("/")[2]] == named[0]
