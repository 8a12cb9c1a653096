"""Controllers that make GPU pods and Kueue's Workloads: how many pods are missing, and why. No others are kept.

What a controller lacks follows from its own spec and status, so a rejected pod that never existed can be counted.
"""

from collections.abc import Iterable
from sys import intern

import msgspec

from exporter.api_objects.timestamps import timestamp
from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.objects.records import Amounts
from exporter.cluster.kubernetes.objects.wire import PodCondition, WireContainer
from exporter.cluster.kubernetes.pods.pod_requests import pod_requests
from exporter.gpu_names import GpuResources

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_MESSAGE_LENGTH = 512


class Controller(msgspec.Struct, frozen=True, gc=False):
    """A controller that lacks pods, or a Workload."""

    kind: str
    namespace: str
    name: str
    uid: str
    requests: Amounts
    """Devices of all pods that are missing."""
    created: float
    """Seconds since the epoch."""
    suspended: bool = False
    queue: str = ""
    """The queue that it waits in, where it names one."""
    failure: str = ""
    """Why its pods cannot be made, where its status says so."""
    owner: tuple[str, str] = ("", "")
    """(kind, name) of its own controller."""
    admitted: float | None = None
    """When a Workload was admitted, in seconds since the epoch; None for one that waits, and for everything else."""


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None


class _Template(msgspec.Struct, gc=False):
    spec: _PodSpec | None = None


class _ControllerSpec(msgspec.Struct, gc=False):
    template: _Template | None = None
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None


class _ControllerStatus(msgspec.Struct, gc=False, rename="camel"):
    replicas: int | None = None
    desired_number_scheduled: int | None = None
    current_number_scheduled: int | None = None
    active: int | None = None
    succeeded: int | None = None
    conditions: list[PodCondition] | None = None


class WireController(msgspec.Struct, gc=False):
    """A ReplicaSet, a StatefulSet, a DaemonSet or a Job."""

    metadata: ObjectMeta
    spec: _ControllerSpec | None = None
    status: _ControllerStatus | None = None


class _PodSet(msgspec.Struct, gc=False):
    count: int = 0
    template: _Template | None = None


class _WorkloadSpec(msgspec.Struct, gc=False, rename="camel"):
    queue_name: str | None = None
    active: bool | None = None
    pod_sets: list[_PodSet] | None = None


class WireWorkload(msgspec.Struct, gc=False):
    """A Workload of Kueue."""

    metadata: ObjectMeta
    spec: _WorkloadSpec | None = None
    status: _ControllerStatus | None = None


def of_replicas(decoded: WireController, kind: str, gpus: GpuResources) -> Controller | None:
    """Convert a ReplicaSet or StatefulSet; return None for one that lacks no GPU pod."""
    spec, status = decoded.spec or _ControllerSpec(), decoded.status or _ControllerStatus()
    wanted = 1 if spec.replicas is None else spec.replicas
    requests = _times(_devices(spec.template, gpus), wanted - (status.replicas or 0))
    failures = (each.message or "FailedCreate" for each in _true(status, "ReplicaFailure"))
    return _controller(decoded.metadata, kind, requests, failure=next(iter(failures), "")[:_MESSAGE_LENGTH])


def of_daemonset(decoded: WireController, gpus: GpuResources) -> Controller | None:
    """Convert a DaemonSet; return None for one that lacks no GPU pod on the nodes that it is for."""
    spec, status = decoded.spec or _ControllerSpec(), decoded.status or _ControllerStatus()
    missing = (status.desired_number_scheduled or 0) - (status.current_number_scheduled or 0)
    return _controller(decoded.metadata, "DaemonSet", _times(_devices(spec.template, gpus), missing))


def of_job(decoded: WireController, gpus: GpuResources) -> Controller | None:
    """Convert a Job; return None for one that has ended or lacks no GPU pod."""
    spec, status = decoded.spec or _ControllerSpec(), decoded.status or _ControllerStatus()
    if any(_true(status, "Complete")) or any(_true(status, "Failed")):
        return None
    wanted = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is not None:
        wanted = min(wanted, spec.completions - (status.succeeded or 0))
    elif status.succeeded:
        wanted = 0  # without a number of completions a Job ends with its first pods that succeed
    requests = _times(_devices(spec.template, gpus), wanted - (status.active or 0))
    return _controller(decoded.metadata, "Job", requests, suspended=bool(spec.suspend))


def of_workload(decoded: WireWorkload, gpus: GpuResources) -> Controller | None:
    """Convert a Workload; return None for one that has ended, is switched off or needs no GPU."""
    spec, status = decoded.spec or _WorkloadSpec(), decoded.status or _ControllerStatus()
    if spec.active is False or any(_true(status, "Finished")):
        return None
    sums: dict[str, int] = {}
    for pods in spec.pod_sets or ():
        for name, count in _times(_devices(pods.template, gpus), pods.count):
            sums[name] = sums.get(name, 0) + count
    admitted = next((timestamp(each.last_transition_time) or 0.0 for each in _true(status, "Admitted")), None)
    found = _controller(decoded.metadata, "Workload", tuple(sorted(sums.items())), suspended=True)
    return found and msgspec.structs.replace(found, queue=intern(spec.queue_name or ""), admitted=admitted)


def _true(status: _ControllerStatus, condition: str) -> Iterable[PodCondition]:
    return (each for each in status.conditions or () if each.type == condition and each.status == "True")


def _devices(template: _Template | None, gpus: GpuResources) -> Amounts:
    spec = template.spec if template else None
    return pod_requests(spec.containers or (), spec.init_containers or (), gpus) if spec else ()


def _times(requests: Amounts, pods: int) -> Amounts:
    return tuple((intern(name), count * pods) for name, count in requests) if pods > 0 else ()


def _controller(
    meta: ObjectMeta, kind: str, requests: Amounts, *, suspended: bool = False, failure: str = ""
) -> Controller | None:
    if not requests:
        return None
    owners = meta.owner_references or ()
    # The Workload of a single pod is controlled by it; that of a group of pods only names them as owners.
    owner = next((each for each in owners if each.controller), owners[0] if owners else None)
    return Controller(
        kind=kind,
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        requests=requests,
        created=timestamp(meta.creation_timestamp) or 0.0,
        suspended=suspended,
        queue=intern((meta.labels or {}).get(QUEUE_LABEL) or ""),
        failure=intern(failure),
        owner=(owner.kind, owner.name) if owner else ("", ""),
    )
