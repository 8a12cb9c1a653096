"""SecurityContextConstraints: they allow what the node exporter has and nothing else, and every program has some."""

import pytest

from tests.deploy.helm.chart import NEEDS_HELM, NODE, container, merged, nested, pod, rendered
from tests.deploy.helm.combinations import REPORT
from tests.deploy.helm.test_privileges import privileges

pytestmark = NEEDS_HELM

CREATE = nested(openshift__scc__create=True)
OWN = ("SecurityContextConstraints", "gpugauge-node")
NON_ROOT = "system:openshift:scc:nonroot-v2"


def allowed(constraints):
    """What the constraints allow, in the words of `privileges`; folders of the node as one."""
    found = {f"capability {name}" for name in constraints["allowedCapabilities"]} | {"user 0"}
    found |= {"hostPID"} if constraints["allowHostPID"] else set()
    return found | ({"folders"} if constraints["allowHostDirVolumePlugin"] else set())


def used(objects):
    found = privileges(objects) - {"token"}
    folders = {each for each in found if each.startswith(("read ", "write "))}
    return found - folders | ({"folders"} if folders else set())


@pytest.mark.parametrize(
    "values",
    [
        {},
        nested(profiling__enabled=False),
        nested(attribution__enabled=False),
        nested(attribution__enabled=False, stateFile__enabled=True),
        nested(hostEngine__address="unix:///run/dcgm/s"),
        nested(processMetrics__enabled=True, auditLog__enabled=True),
        nested(podMetadata__source="api"),
    ],
)
def test_the_constraints_allow_exactly_what_the_node_exporter_has(values):
    objects = rendered(merged(CREATE, values))
    constraints = objects[OWN]
    assert allowed(constraints) == used(objects)
    never = (
        "allowPrivilegedContainer",
        "allowPrivilegeEscalation",
        "allowHostNetwork",
        "allowHostIPC",
        "allowHostPorts",
    )
    assert not any(constraints[name] for name in never)
    kinds = {kind for volume in pod(objects)["volumes"] for kind in volume.keys() - {"name"}}
    assert kinds <= set(constraints["volumes"])


@pytest.mark.parametrize(("values", "role"), [({}, "gpugauge-node-scc"), (nested(restricted=True), NON_ROOT)])
def test_the_account_of_every_program_is_bound_to_some(values, role):
    objects = rendered(merged(CREATE, values, {"report": REPORT}))
    accounts = {
        each["subjects"][0]["name"]: each["roleRef"]["name"]
        for (kind, name), each in objects.items()
        if kind == "RoleBinding" and name.endswith("-scc")
    }
    assert accounts == {"gpugauge-node": role, "gpugauge-cluster": NON_ROOT, "gpugauge-report": NON_ROOT}
    workloads = [NODE, ("Deployment", "gpugauge-cluster"), ("CronJob", "gpugauge-report")]
    assert {pod(objects, each)["serviceAccountName"] for each in workloads} == accounts.keys()
    assert (OWN in objects) == (role != NON_ROOT)
    if OWN in objects:
        (rule,) = objects["ClusterRole", role]["rules"]
        assert (rule["resourceNames"], rule["verbs"]) == (["gpugauge-node"], ["use"])


def test_the_selinux_type_is_that_of_the_values_and_there_is_none_without():
    values = nested(openshift__seLinuxType="spc_t")
    assert container(rendered(values))["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
    assert "seLinuxOptions" not in container(rendered())["securityContext"]
    assert not {kind for kind, _ in rendered()} & {OWN[0]}
