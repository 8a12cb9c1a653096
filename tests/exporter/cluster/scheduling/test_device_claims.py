"""What pods ask for through ResourceClaims, and which devices nodes offer through DRA."""

import json
from dataclasses import replace

import msgspec
import pytest

from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.metrics.nodes import node_families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 4)
NONE = "0/1 nodes are available: 1 cannot allocate all claims."


def device_class(name="gpu.nvidia.com", driver="gpu.nvidia.com", kind="", resource=None):
    text = f"device.driver == '{driver}'" + (f" && device.attributes['{driver}'].type == '{kind}'" if kind else "")
    spec = {"selectors": [{"cel": {"expression": text}}], "extendedResourceName": resource}
    return {"metadata": {"name": name}, "spec": spec}


def resource_slice(node, devices, *, generation=1, driver="gpu.nvidia.com"):
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices}
    return {"metadata": {"name": f"{node}-{driver}-{generation}"}, "spec": spec}


def device(name, kind="gpu", *, tainted=False):
    taints = [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}] if tainted else None
    return {"name": name, "attributes": {"type": {"string": kind}}, "taints": taints}


def claim(name, count=1, device_class="gpu.nvidia.com", given=(), **request):
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **request}
    results = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "d1", "device": each} for each in given]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": {"allocation": {"devices": {"results": results}}} if given else {},
    }


def claiming(given, *names, template=""):
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    if template:
        claims.append({"name": template, "resourceClaimTemplateName": template})
    return {**given, "spec": {**given["spec"], "resourceClaims": claims}}


PLAIN = objects.pod("p", requests={}, created=NOW - 1000)


def view(**kinds):
    """The view of a watcher to which the API server lists these objects, and denies all others."""
    return view_of(NOW, GPUS, listed(NOW, **kinds), ClusterHistory())


def cluster(**kinds):
    usual = {
        "nodes": [objects.node("d1", {}, H100)],
        "deviceclasses": [device_class()],
        "resourceslices": [resource_slice("d1", [device(f"gpu-{number}") for number in range(4)])],
        "resourceclaims": [],
        "resourceclaimtemplates": [],
    }
    return view(**{**usual, **kinds})


def test_a_pod_asks_for_what_its_claims_ask_for():
    pod = claiming(PLAIN, "two", "mig")
    found = cluster(pods=[pod], resourceclaims=[claim("two", 2), claim("mig", 1, "mig.nvidia.com")])
    assert found.pods[0].requests == (("gpu.nvidia.com", 2), ("mig.nvidia.com", 1))


def test_a_claim_that_is_not_made_yet_asks_for_what_its_template_does():
    template = {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": claim("x", 3)["spec"]}}
    found = cluster(pods=[claiming(PLAIN, template="t")], resourceclaimtemplates=[template])
    assert found.pods[0].requests == (("gpu.nvidia.com", 3),)
    assert found.pending[0].reason == PendingReason.CLAIM


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"requests": [{"name": "r", "deviceClassName": "gpu.nvidia.com", "count": 2}]}, 2),
        ({"requests": [{"name": "r", "deviceClassName": "gpu.nvidia.com"}]}, 1),
        ({"requests": [{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com"}]}]}, 1),
    ],
)
def test_claims_of_every_version_of_the_api_are_understood(spec, expected):
    given = {**claim("c"), "spec": {"devices": spec}}
    assert cluster(pods=[claiming(PLAIN, "c")], resourceclaims=[given]).pods[0].requests == (
        ("gpu.nvidia.com", expected),
    )


def test_a_claim_of_all_devices_counts_those_that_it_was_given():
    given = claim("c", None, given=["gpu-0", "gpu-1", "gpu-2"], allocationMode="All")
    running = objects.running(claiming(PLAIN, "c"), "d1")
    assert cluster(pods=[running], resourceclaims=[given]).pods[0].requests == (("gpu.nvidia.com", 3),)


def test_a_claim_only_to_monitor_devices_makes_no_gpu_pod():
    found = cluster(pods=[claiming(PLAIN, "c")], resourceclaims=[claim("c", adminAccess=True)])
    assert found.pods == ()


def test_a_claim_for_other_devices_makes_no_gpu_pod():
    nic = claim("c", device_class="nic.example.com")
    assert cluster(pods=[claiming(PLAIN, "c")], resourceclaims=[nic]).pods == ()


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        (device_class("h100"), True),
        (device_class("gpu-nic", "nic.example.com"), False),
        (device_class("any", "nic.example.com", resource=GPU), True),
    ],
)
def test_a_device_class_means_gpus_by_its_driver_or_its_resource(given, gpus):
    name = given["metadata"]["name"]
    found = cluster(pods=[claiming(PLAIN, "c")], resourceclaims=[claim("c", 1, name)], deviceclasses=[given])
    assert bool(found.pods) is gpus


def test_a_missing_claim_is_the_reason_and_the_pod_counts_as_a_gpu_pod():
    found = cluster(pods=[claiming(PLAIN, "absent")])
    assert [(each.reason, each.pod.requests) for each in found.pending] == [
        (PendingReason.CLAIM, (("resourceclaim", 1),))
    ]


@pytest.mark.parametrize("first", [{}, {"resourceclaims": []}])
def test_pods_whose_claims_are_read_after_the_first_collection_are_counted_no_later_than_the_others(first):
    """They were bound, or had failed, before the watcher started, whenever their claims are read."""
    history = ClusterHistory()
    running = objects.running(claiming(PLAIN, "c"), "d1", NOW - 500)
    failed = objects.running(claiming(objects.pod("f", requests={}, created=NOW - 1000), "c"), "d1", NOW - 500)
    failed["status"] |= {"phase": "Failed", "reason": "Evicted"}
    pods = {"pods": [running, failed], "nodes": [objects.node("d1", {}, H100)], "deviceclasses": [device_class()]}
    view_of(NOW, GPUS, listed(NOW, **pods, **first), history)
    for _ in range(2):
        found = view_of(NOW + 1, GPUS, listed(NOW + 1, **pods, resourceclaims=[claim("c")]), history)
        assert {pod.name for pod in (*found.pods, *found.failed)} == {"p", "f"}
        assert (found.waits, found.failures, found.rejections) == ({}, {}, {})


def test_without_the_permission_to_read_claims_a_pod_with_claims_is_counted_while_it_is_pending():
    found = view(pods=[claiming(PLAIN, "c")], nodes=[objects.node("d1", {}, H100)])
    assert [each.reason for each in found.pending] == [PendingReason.NOT_TRIED]
    bound = objects.bound(claiming(PLAIN, "c"), "d1")
    starting = view(pods=[bound], nodes=[objects.node("d1", {}, H100)])
    assert [each.reason for each in starting.pending] == [PendingReason.STARTING]
    running = objects.running(claiming(PLAIN, "c"), "d1")
    assert view(pods=[running], nodes=[]).pods == ()


def test_a_claim_whose_devices_are_all_given_is_the_reason():
    given = claim("given", 4, given=[f"gpu-{number}" for number in range(4)])
    pods = [objects.unschedulable(claiming(PLAIN, "c"), NONE)]
    assert cluster(pods=pods, resourceclaims=[claim("c"), given]).pending[0].reason == PendingReason.CLAIM


def test_tainted_devices_are_gpus_that_are_unavailable():
    slices = [resource_slice("d1", [device("gpu-0", tainted=True)])]
    pods = [objects.unschedulable(claiming(PLAIN, "c"), NONE)]
    found = cluster(pods=pods, resourceclaims=[claim("c")], resourceslices=slices)
    assert found.pending[0].reason == PendingReason.GPU_UNAVAILABLE


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ("Insufficient cpu", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("node(s) were unschedulable", PendingReason.CLAIM),
    ],
)
def test_beside_free_devices_the_message_decides(beside, reason):
    message = f"0/4 nodes are available: 1 {beside}, 3 cannot allocate all claims."
    pods = [objects.unschedulable(claiming(PLAIN, "c"), message)]
    assert cluster(pods=pods, resourceclaims=[claim("c")]).pending[0].reason == reason


@pytest.mark.parametrize(
    ("asked", "reason"), [(1, PendingReason.INSUFFICIENT_GPU), (5, PendingReason.UNSATISFIABLE_SIZE)]
)
@pytest.mark.parametrize("name", [GPU, "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
def test_a_pod_that_asks_for_a_resource_served_by_dra_is_short_of_gpus(name, asked, reason):
    pod = objects.pod("p", requests={name: asked}, created=NOW - 1000)
    given = claim("given", 4, given=[f"gpu-{number}" for number in range(4)])
    classes = [device_class(resource=GPU)]
    found = cluster(pods=[objects.unschedulable(pod, NONE)], resourceclaims=[given], deviceclasses=classes)
    assert [each.reason for each in found.pending] == [reason]


def test_without_the_permission_to_read_slices_the_message_decides():
    given = objects.unschedulable(objects.pod("p", requests={GPU: 9}, created=NOW - 1000), NONE)
    found = view(pods=[given], nodes=[objects.node("d1", {}, H100)])
    assert [each.reason for each in found.pending] == [PendingReason.INSUFFICIENT_GPU]


def node_series(found):
    series = exposed(node_families(found, {}))
    return {
        key.split("{")[0].removeprefix("gpugauge_node_gpu_"): value
        for key, value in series.items()
        if "resource" in key
    }


@pytest.mark.parametrize("resource", [None, GPU])
def test_a_node_has_the_devices_of_its_slices_as_capacity(resource):
    slices = [resource_slice("d1", [device("gpu-0"), device("gpu-1"), device("gpu-2", tainted=True), device("gpu-3")])]
    running = objects.running(claiming(PLAIN, "c"), "d1")
    found = cluster(
        pods=[running, objects.running(claiming(objects.pod("q", requests={}), "c"), "d1")],
        resourceslices=slices,
        resourceclaims=[claim("c", given=["gpu-0"])],
        deviceclasses=[device_class(resource=resource)],
    )
    assert node_series(found) == {"capacity": 4, "allocatable": 3, "requested": 1, "free": 2}
    name = "nvidia_com_gpu" if resource else "gpu_nvidia_com"
    assert all(f'resource="{name}"' in key for key in exposed(node_families(found, {})) if "resource" in key)


def test_of_a_pool_only_the_newest_generation_counts():
    slices = [
        resource_slice("d1", [device("gpu-0"), device("gpu-1")], generation=1),
        resource_slice("d1", [device("gpu-0")], generation=2),
    ]
    assert node_series(cluster(pods=[], resourceslices=slices))["capacity"] == 1


def test_the_devices_of_a_class_are_told_apart_by_their_type():
    classes = [device_class(kind="gpu"), device_class("mig.nvidia.com", kind="mig")]
    slices = [resource_slice("d1", [device("gpu-0"), device("mig-0", "mig"), device("mig-1", "mig")])]
    series = exposed(node_families(cluster(pods=[], resourceslices=slices, deviceclasses=classes), {}))
    capacity = {key.split('resource="')[1].split('"')[0]: value for key, value in series.items() if "capacity" in key}
    assert capacity == {"gpu_nvidia_com": 1, "mig_nvidia_com": 2}


def test_an_object_that_cannot_be_read_costs_only_itself():
    kind = next(kind for kind in object_kinds(GPUS) if kind.name == "resourceslices")
    items = [{"metadata": {"name": "bad"}, "spec": {"devices": 7}}, resource_slice("d1", [device("gpu-0")])]
    page = kind.codec.page(json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())
    assert len(page.records) == len(page.malformed) == 1


def test_records_of_devices_are_small_and_immutable():
    found = cluster(pods=[])
    with pytest.raises(AttributeError):
        found.devices.slices[0].node = "other"
    assert msgspec.structs.replace(found.devices.slices[0]) == found.devices.slices[0]
    assert replace(found.devices).by_node == found.devices.by_node
