"""A cluster in which every part of what the watcher may read adds series of its own."""

from exporter.cluster.kubernetes.watching.permissions import WATCHED
from simulators import objects
from tests.exporter.cluster import autoscaler

GPU = "nvidia.com/gpu"
DRA = "gpu.nvidia.com"
LABELS = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8) | {"cloud.google.com/gke-nodepool": "main"}
FULL = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
UNSELECTED = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
FAILED_GROUP = autoscaler.GKE.format("main")
QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: 8, limited: 8'
TEMPLATE = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}


def serve_all(server):
    """Serve every kind at its preferred version."""
    for part in WATCHED:
        for name in part.resources:
            server.serve(part.paths(name)[0])


def fill(server, now):
    """Put the objects of every part; `now` is in seconds since the epoch."""
    made = (*_needed(now), *_events(now), *_devices(now), *_controllers(now), *_of_queues(now), *_of_autoscalers(now))
    for kind, given in made:
        server.put(kind, given)


def _needed(now):
    old = now - 1000
    yield "namespaces", objects.namespace("a", {"gpugauge.io/low-utilization": "disabled"})
    yield "nodes", objects.node("n1", {GPU: 8}, LABELS)
    yield "nodes", objects.node("d1", {}, objects.gpu_labels("NVIDIA-L4", 4))
    yield "pods", objects.running(objects.pod("runs", "a", {GPU: 6}, created=old), "n1", old)
    yield "pods", objects.bound(objects.pod("mounts", "a", {GPU: 2}, created=old), "n1", old)
    # One pod fits on a node like n1, one selects a node that does not exist, and one asks for more than any node has.
    yield "pods", objects.unschedulable(objects.pod("waits", "a", {GPU: 1}, created=old), FULL, old)
    announced = objects.pod("announced", "a", {GPU: 1}, created=old)
    announced["spec"]["nodeSelector"] = {"example.com/pool": "new"}
    yield "pods", objects.unschedulable(announced, UNSELECTED, old)
    yield "pods", objects.unschedulable(objects.pod("big", "a", {GPU: 10}, created=old), FULL, old)


def _event(name, reason, message, about, now):
    meta = {"name": name, "namespace": "a", "creationTimestamp": objects.stamp(now - 5)}
    times = {"lastTimestamp": objects.stamp(now - 5)}
    return {"metadata": meta, "involvedObject": about, "reason": reason, "message": message, **times}


def _about(kind, name):
    return {"kind": kind, "namespace": "a", "name": name, "uid": objects.uid_of(kind.lower(), "a", name)}


def _events(now):
    for name, group in (("announced", "new"), ("waits", FAILED_GROUP)):
        grows = f"pod triggered scale-up: [{{{group} 1->2 (max: 3)}}]"
        yield "events", _event(f"grows-{name}", "TriggeredScaleUp", grows, _about("Pod", name), now)
    failed = 'MountVolume.SetUp failed for volume "data" : rpc error'
    yield "events", _event("mount", "FailedMount", failed, _about("Pod", "mounts"), now)
    yield "events", _event("rejected", "FailedCreate", QUOTA, _about("Job", "rejected"), now)


def _devices(now):
    yield "deviceclasses", {"metadata": {"name": DRA}, "spec": _selects(f"device.driver == '{DRA}'")}
    devices = [{"name": f"gpu-{number}", "attributes": {"type": {"string": "gpu"}}} for number in range(4)]
    pool = {"name": "d1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRA, "pool": pool, "nodeName": "d1", "devices": devices}
    yield "resourceslices", {"metadata": {"name": "d1-slice"}, "spec": spec}
    exactly = {"deviceClassName": DRA, "allocationMode": "ExactCount", "count": 1}
    claim = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    yield "resourceclaimtemplates", {"metadata": {"name": "t", "namespace": "a"}, "spec": {"spec": claim}}
    given = {"results": [{"request": "r", "driver": DRA, "pool": "d1", "device": "gpu-0"}]}
    for name, status in (("made", {}), ("given", {"allocation": {"devices": given}})):
        yield "resourceclaims", {"metadata": {"name": name, "namespace": "a"}, "spec": claim, "status": status}
    yield "pods", _claiming("claims", {"resourceClaimName": "made"}, now)
    yield "pods", _claiming("templated", {"resourceClaimTemplateName": "t"}, now)
    yield "pods", objects.running(_claiming("holds", {"resourceClaimName": "given"}, now), "d1", now - 900)


def _claiming(name, source, now):
    pod = objects.pod(name, "a", {}, created=now - 1000)
    pod["spec"]["resourceClaims"] = [{"name": "c", **source}]
    return pod


def _selects(expression):
    return {"selectors": [{"cel": {"expression": expression}}]}


def _controller(kind, name, now, spec, status=None, labels=None):
    uid = objects.uid_of(kind.lower(), "a", name)
    meta = {"name": name, "namespace": "a", "uid": uid, "creationTimestamp": objects.stamp(now - 500)}
    return {"metadata": meta | {"labels": labels or {}}, "spec": {"template": TEMPLATE, **spec}, "status": status or {}}


def _controllers(now):
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    status = {"replicas": 1, "conditions": [failed]}
    yield "replicasets", _controller("ReplicaSet", "dep-5d8", now, {"replicas": 3}, status)
    yield "jobs", _controller("Job", "rejected", now, {"parallelism": 1, "completions": 1})
    queue = {"kueue.x-k8s.io/queue-name": "big"}
    yield "jobs", _controller("Job", "suspended", now, {"parallelism": 1, "suspend": True}, labels=queue)


def _of_queues(now):
    hard = {"hard": {"requests.nvidia.com/gpu": "16"}, "used": {"requests.nvidia.com/gpu": "8"}}
    yield "resourcequotas", {"metadata": {"name": "q", "namespace": "a"}, "spec": {}, "status": hard}
    meta = {"name": "ray", "namespace": "a", "uid": "ray", "creationTimestamp": objects.stamp(now - 500)}
    meta["ownerReferences"] = [objects.owner("RayCluster", "ray", "a")]
    spec = {"queueName": "ray-queue", "active": True, "podSets": [{"name": "m", "count": 4, "template": TEMPLATE}]}
    yield "workloads", {"metadata": meta, "spec": spec, "status": {}}


def _of_autoscalers(now):
    pool = {"template": {"spec": {"requirements": [], "taints": []}}, "limits": {GPU: "64"}}
    yield "nodepools", {"metadata": {"name": "gpus"}, "spec": pool}
    status = autoscaler.yaml_status(autoscaler.group(FAILED_GROUP, 1, 3, "Backoff"), at=now)
    yield "configmaps", autoscaler.config_map(status)
