"""The labels by which a series names a pod, a namespace or a workload, the same in both programs.

Namespace, pod and container come twice: under the plain names that people and tenancy proxies use, and under `gpu_…`
names, which no target label of a scrape replaces whatever `honor_labels` is.
"""

NAMESPACE = ("namespace", "gpu_namespace")
POD = ("namespace", "pod", "gpu_namespace", "gpu_pod", "gpu_pod_uid")
CONTAINER = ("namespace", "pod", "container", "gpu_namespace", "gpu_pod", "gpu_container", "gpu_pod_uid")
WORKLOAD = ("workload", "workload_type")


def namespace_labels(namespace: str) -> dict[str, str]:
    """Name a namespace."""
    return {"namespace": namespace, "gpu_namespace": namespace}


def pod_labels(namespace: str, pod: str, uid: str) -> dict[str, str]:
    """Name a pod as a whole."""
    return {"namespace": namespace, "pod": pod, "gpu_namespace": namespace, "gpu_pod": pod, "gpu_pod_uid": uid}


def pod_values(namespace: str, pod: str, uid: str) -> tuple[str, str, str, str, str]:
    """The values of `pod_labels` in the order of `POD`."""
    return namespace, pod, namespace, pod, uid


def container_labels(namespace: str, pod: str, container: str, uid: str) -> dict[str, str]:
    """Name a container of a pod. `uid` may be empty: the kubelet does not report it."""
    plain = {"namespace": namespace, "pod": pod, "container": container}
    return plain | {f"gpu_{name}": value for name, value in plain.items()} | {"gpu_pod_uid": uid}


def workload_labels(workload: str, workload_type: str) -> dict[str, str]:
    """Name a workload and its type, such as `deployment`."""
    return {"workload": workload, "workload_type": workload_type}
