"""The flags of the node exporter for attribution to pods and jobs."""

from exporter.flags.cluster import RESOURCE_NAMES
from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, NAMES, RESOURCE_PATTERNS, choice, text_value
from exporter.gpu_names import MONITORING_NAMESPACES, RESERVATION_NAMESPACES

KUBELET_ROOT = "/var/lib/kubelet"
ATTRIBUTION = (
    Flag("kubernetes", BOOLEAN, "attribute devices to pods", "k", "DCGM_EXPORTER_KUBERNETES"),
    Flag(
        "pod-resources-kubelet-socket",
        text_value("PATH"),
        "the kubelet's PodResources socket",
        "",
        "DCGM_POD_RESOURCES_KUBELET_SOCKET",
        f"{KUBELET_ROOT}/pod-resources/kubelet.sock",
    ),
    Flag(
        "kubernetes-gpu-id-type",
        choice("uid", "device-name", "auto"),
        "how the kubelet's ids name GPUs, as for dcgm-exporter; every id is recognized by its form, whichever is given",
        variable="DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
        default="auto",
    ),
    Flag(
        "kubelet-root",
        text_value("FOLDER"),
        "folder of the kubelet, where its PodResources socket is unless another one is named: k0s, MicroK8s and others "
        "have one of their own",
        variable="GPUGAUGE_KUBELET_ROOT",
        default=KUBELET_ROOT,
    ),
    RESOURCE_NAMES,
    Flag(
        "index-resource-names",
        RESOURCE_PATTERNS,
        "those of the resource names that mean GPUs whose device ids are indices of GPUs, as NVML counts them; `*` "
        "stands for any text. Of other resources, a bare number is an unknown id",
        variable="GPUGAUGE_INDEX_RESOURCE_NAMES",
    ),
    Flag(
        "reservation-namespaces",
        NAMES,
        "namespaces of the pods that occupy GPUs of which a scheduler gives out parts (KAI, Run:ai): these GPUs are "
        "shared, and their users are not known",
        variable="GPUGAUGE_RESERVATION_NAMESPACES",
        default=",".join(RESERVATION_NAMESPACES),
    ),
    Flag(
        "kubernetes-enable-dra",
        BOOLEAN,
        "with --kubernetes, read the ResourceSlices of this node and the ResourceClaims of its containers from the API "
        "server, which needs a token and a role, and write the labels dra_* on DCGM-named series of devices of claims. "
        "Without it such devices are told by the names that NVIDIA's DRA driver gives them",
        variable="KUBERNETES_ENABLE_DRA",
    ),
    Flag(
        "monitoring-namespaces",
        NAMES,
        "namespaces whose pods have GPUs through ResourceClaims for monitoring alone (admin access) and so are never "
        "users; not used where the claims themselves are read, which say it",
        variable="GPUGAUGE_MONITORING_NAMESPACES",
        default=",".join(MONITORING_NAMESPACES),
    ),
    Flag(
        "hpc-job-mapping-dir",
        text_value("FOLDER"),
        "folder with a file for each GPU that has its HPC jobs, for the label hpc_job",
        variable="DCGM_HPC_JOB_MAPPING_DIR",
    ),
)
