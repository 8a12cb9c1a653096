"""Why series of a device have no labels of a pod, as `gpugauge doctor` explains it."""

from exporter.reason import Reason


class PodLabelReason(Reason):
    """Why labels of a pod are missing; on no series."""

    ATTRIBUTION_OFF = (
        "attribution_off",
        "Devices are not attributed to pods: --kubernetes is not given.",
        "On a Kubernetes node give --kubernetes, and mount the kubelet's folder pod-resources.",
    )
    LABELS_OFF = (
        "labels_off",
        "The labels of pods are turned off for every series of a device (--allocation-labels=none).",
        "None needed: join with gpugauge_allocation_info.",
    )
    KUBELET_DOWN = (
        "kubelet_down",
        "The kubelet cannot be read, so it is not known which pod has which device.",
        "Do what the finding about the kubelet says.",
    )
    UNALLOCATED = (
        "unallocated",
        "The kubelet lists no container for the device. It lists no init containers, except sidecars.",
        "None needed.",
    )
    PARTITIONED = (
        "partitioned",
        "The device consists of MIG devices: pods are given these, and their series have the labels.",
        "None needed.",
    )
    SHARED = (
        "shared",
        "Several containers may have the device, through replicas or fractions: its values are no single pod's.",
        "None needed: gpugauge_allocation_info names each of them.",
    )
    RESERVED = (
        "reserved",
        "A reservation pod occupies the device for a scheduler that gives out parts of it; the kubelet lists no user.",
        "None needed; which namespaces reservation pods are in is set with --reservation-namespaces.",
    )
    CONFLICTING = (
        "conflicting",
        "Several pods have the device although it is not shared: kubelets before 1.34 can list finished pods.",
        "Delete the finished pods, or update Kubernetes.",
    )
    SEVERAL_CONTAINERS = (
        "several_containers",
        "Several containers of one pod have the device: the label container is empty, namespace and pod are not.",
        "None needed: gpugauge_allocation_info names each container.",
    )
    UNCERTAIN = (
        "uncertain",
        "No container is listed for the device, but an id that matches no device may mean it.",
        "Do what the findings about allocations say of these ids.",
    )
