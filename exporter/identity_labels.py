"""The label pairs that say which pod or namespace a series speaks of.

Each comes twice: under the name people and tenancy proxies use, and under one that no target label overwrites. The
watcher speaks of pods as a whole, so `container` has no place here.
"""

from exporter.cluster.kubernetes.records import Pod

NAMESPACE = ("namespace", "gpu_namespace")
POD = ("namespace", "pod", "gpu_namespace", "gpu_pod", "gpu_pod_uid")

LabelPairs = tuple[tuple[str, str], ...]


def of_namespace(namespace: str) -> LabelPairs:
    return (("namespace", namespace), ("gpu_namespace", namespace))


def of_pod(pod: Pod) -> LabelPairs:
    return (
        ("namespace", pod.namespace),
        ("pod", pod.name),
        ("gpu_namespace", pod.namespace),
        ("gpu_pod", pod.name),
        ("gpu_pod_uid", pod.uid),
    )


def of_workload(pod: Pod) -> LabelPairs:
    return (("workload", pod.workload), ("workload_type", pod.workload_type))
