"""Finds the workload (such as a Deployment or a CronJob) that a pod belongs to, from the pod alone.

The owners themselves are not read: that would mean watching ReplicaSets and Jobs, which outnumber pods in some
clusters. Owner references, names and labels that controllers set on the pod are enough, with one exception: a Job's
own owner stays unknown where it left no label on the pod.
"""

import re
from collections.abc import Mapping

from exporter.api_objects.wire import OwnerReference

_BY_LABEL = (
    ("serving.kserve.io/inferenceservice", "inferenceservice"),
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset"),
    ("notebook-name", "notebook"),
)
_QUEUED_GROUP = "kueue.x-k8s.io/pod-group-name"
"""Kueue admits pods without a controller together that have the same value."""
_RAY_KIND = "ray.io/originated-from-crd"
_RAY_NAME = "ray.io/originated-from-cr-name"
"""KubeRay writes both on RayClusters and on the pod that submits a RayJob; Ray's own pods have those of a template."""
_RAY_TYPES = {"RayJob": "rayjob", "RayService": "rayservice"}
_HUB = "hub.jupyter.org/"
_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_TRAINJOB_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_SCHEDULED_JOB = re.compile(r"(.+)-(\d{8,9})", re.ASCII)
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
"""A name of an object that makes pods: a DNS subdomain of at most 253 characters."""
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}", re.ASCII)
_MINUTE = 60
_WEEK = 7 * 24 * 3600


def workload_of(
    name: str, labels: Mapping[str, str | None], owners: list[OwnerReference] | None, created: float
) -> tuple[str, str]:
    """Return (workload, workload type), the type in lower case.

    A pod without a controller, or whose controller is its node, is its own workload, of type `pod`, or `notebook` where
    JupyterHub made it. So is one whose reference no controller could have written: the API server takes any text there.
    Pods without a controller that Kueue admits as a group are one workload, of type `podgroup`.
    `created` is the pod's creation in seconds since the epoch.
    """
    owner = next((each for each in owners or () if each.controller), None)
    if owner is None and _is_of_jupyterhub(labels):
        return name, "notebook"
    if owner is None and _NAME.fullmatch(group := labels.get(_QUEUED_GROUP) or ""):
        return group, "podgroup"
    if owner is None or owner.kind == "Node" or not (_NAME.fullmatch(owner.name) and _KIND.fullmatch(owner.kind)):
        return name, "pod"
    for label, workload_type in _BY_LABEL:
        if value := labels.get(label):
            return value, workload_type
    if owner.kind in ("RayCluster", "Job") and (ray := _of_ray(labels)) is not None:
        return ray
    if owner.kind == "ReplicaSet":
        return _of_replicaset(owner.name, labels.get("pod-template-hash"))
    if owner.kind == "Job":
        return _of_job(owner.name, labels, created)
    return owner.name, owner.kind.lower()


def _is_of_jupyterhub(labels: Mapping[str, str | None]) -> bool:
    """Whether KubeSpawner made the pod: it has no controller, and is named after its user."""
    ours = labels.get("app") == "jupyterhub" or any(key.startswith(_HUB) for key in labels)
    return ours and labels.get("component") == "singleuser-server"


def _of_ray(labels: Mapping[str, str | None]) -> tuple[str, str] | None:
    """The RayJob or RayService that a RayCluster or a Job was made for; None where the pod's labels name none."""
    name, workload_type = labels.get(_RAY_NAME), _RAY_TYPES.get(labels.get(_RAY_KIND) or "")
    return (name, workload_type) if name and workload_type else None


def _of_replicaset(name: str, template_hash: str | None) -> tuple[str, str]:
    """A Deployment names its ReplicaSets `<deployment>-<pod-template-hash>`."""
    deployment = name.removesuffix(f"-{template_hash}") if template_hash else name
    return (deployment, "deployment") if deployment not in ("", name) else (name, "replicaset")


def _of_job(name: str, labels: Mapping[str, str | None], created: float) -> tuple[str, str]:
    """A CronJob names its Jobs `<cronjob>-<minutes since the epoch>`.

    A Job that a user named after a date also ends in eight digits, so the minute must lie in the week before the
    pod was created.
    """
    if jobset := labels.get(_JOBSET):
        return jobset, "trainjob" if labels.get(_TRAINJOB_STEP) else "jobset"
    found = _SCHEDULED_JOB.fullmatch(name)
    if found and 0 <= created - int(found[2]) * _MINUTE <= _WEEK:
        return found[1], "cronjob"
    return name, "job"
