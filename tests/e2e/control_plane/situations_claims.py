"""Situations that ResourceClaims and the devices for them decide, and an error of the scheduler."""

from simulators.objects import cordoned
from tests.e2e.control_plane.situation import GPU, h100, pod, situation

DRA = "gpu.nvidia.com"
RESOURCE = "resource.k8s.io/v1"
EXTENDED = "example.com/extended"
"""The resource whose nodes an extender filters that does not answer."""
UNTRIED = {"unconditional": ("p",)}


def device_class(name=DRA, resource=None, expression=f"device.driver == '{DRA}'"):
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    if resource:
        spec["extendedResourceName"] = resource
    return {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def devices_of(node, count):
    made = [{"name": f"gpu-{number}", "attributes": {"type": {"string": "gpu"}}} for number in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRA, "pool": pool, "nodeName": node, "devices": made}
    return {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def tainted(made):
    """The slice with a taint on each of its devices, as a driver sets it for one that has failed."""
    for each in made["spec"]["devices"]:
        each["taints"] = [{"key": "example.com/failed", "effect": "NoSchedule"}]
    return made


def with_alternatives(made, *counts):
    """The claim that takes the first of these numbers of devices that it can have."""
    (request,) = made["spec"]["devices"]["requests"]
    del request["exactly"]
    request["firstAvailable"] = [
        {"name": f"a{count}", "deviceClassName": DRA, "allocationMode": "ExactCount", "count": count}
        for count in counts
    ]
    return made


def claim(name, count=1, of_class=DRA, **more):
    exactly = {"deviceClassName": of_class, "allocationMode": "ExactCount", "count": count, **more}
    exactly = {key: value for key, value in exactly.items() if value is not None}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def with_selector(made, expression):
    made["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    return made


def templated(name, template):
    """A pod whose ResourceClaim a controller is to make from a template."""
    made = claiming(name, "")
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return made


def claiming(name, of_claim):
    """A pod that asks for GPUs through a ResourceClaim."""
    made = pod(name, 0, resourceClaims=[{"name": "gpu", "resourceClaimName": of_claim}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def runs(plane, namespace, name):
    """Wait until the scheduler has bound a pod, and let it run."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    plane.until(lambda: plane.call("GET", path)["spec"].get("nodeName"))
    plane.patch(f"{path}/status", {"status": {"phase": "Running"}})


SITUATIONS = (
    situation(
        "claims-taken",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        claim("both", 2),
        claim("one", 1),
        claiming("holds", "both"),
        claiming("p", "one"),
        steps=(lambda plane, namespace: runs(plane, namespace, "holds"),),
    ),
    situation(
        "claim-missing",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        claiming("p", "nowhere"),
        **UNTRIED,
    ),
    situation(
        "class-missing",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        claim("one", 1, "gpu.example.com"),
        claiming("p", "one"),
    ),
    situation(
        "class-that-fails",
        "claim",
        h100("d1", 0),
        device_class(expression=f"device.attributes['{DRA}'].nothing == 'x'"),
        devices_of("d1", 2),
        claim("one", 1),
        claiming("p", "one"),
    ),
    situation(
        "resource-of-dra-nine-of-eight",
        "unsatisfiable_size",
        h100("d1", 0),
        device_class(resource=GPU),
        devices_of("d1", 8),
        pod("p", 9),
    ),
    situation(
        "resource-of-dra-taken",
        "insufficient_gpu",
        h100("d1", 0),
        device_class(resource=GPU),
        devices_of("d1", 2),
        pod("holds", 2),
        pod("p", 1),
        steps=(lambda plane, namespace: runs(plane, namespace, "holds"),),
    ),
    situation(
        "implicit-resource-of-dra",
        {"p": "insufficient_gpu", "q": "unsatisfiable_size"},
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        pod("holds", 0, asks={f"deviceclass.resource.kubernetes.io/{DRA}": 2}),
        pod("p", 0, asks={f"deviceclass.resource.kubernetes.io/{DRA}": 1}),
        pod("q", 0, asks={f"deviceclass.resource.kubernetes.io/{DRA}": 3}),
        steps=(lambda plane, namespace: runs(plane, namespace, "holds"),),
    ),
    situation(
        "claim-of-no-such-device",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        with_selector(claim("one"), f"device.attributes['{DRA}'].type == 'mig'"),
        claiming("p", "one"),
    ),
    situation(
        "claim-on-a-cordoned-node",
        "node_unavailable",
        cordoned(h100("d1", 0)),
        device_class(),
        devices_of("d1", 2),
        claim("one"),
        claiming("p", "one"),
    ),
    situation(
        "devices-tainted",
        "gpu_unavailable",
        h100("d1", 0),
        device_class(),
        tainted(devices_of("d1", 2)),
        claim("one"),
        claiming("p", "one"),
    ),
    situation(
        "claim-of-all-devices",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        claim("one"),
        claim("all", None, allocationMode="All"),
        claiming("holds", "one"),
        claiming("p", "all"),
        steps=(lambda plane, namespace: runs(plane, namespace, "holds"),),
    ),
    situation(
        "claim-with-alternatives",
        "claim",
        h100("d1", 0),
        device_class(),
        devices_of("d1", 2),
        with_alternatives(claim("either"), 4, 3),
        claiming("p", "either"),
    ),
    situation(
        "claims-shared",
        {"p": "starting", "q": "starting"},
        h100("d1", 0),
        device_class(),
        devices_of("d1", 1),
        claim("one"),
        claiming("p", "one"),
        claiming("q", "one"),
    ),
    situation("template-missing", "claim", h100("d1", 0), device_class(), templated("p", "nowhere"), **UNTRIED),
    situation(
        "extender-down",
        "scheduler_error",
        h100("n1", resources={EXTENDED: 8}),
        pod(asks={EXTENDED: 1}),
    ),
)
