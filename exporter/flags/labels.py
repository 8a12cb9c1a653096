"""The flags for labels of DCGM-named series."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, choice

LABELS = (
    Flag(
        "hostname-label",
        choice("hostname", "Hostname", "both", "none"),
        "name of the label with the node's name, which NODE_NAME gives",
        variable="GPUGAUGE_HOSTNAME_LABEL",
        default="hostname",
    ),
    Flag("no-hostname", BOOLEAN, "leave that label out", "n", "DCGM_EXPORTER_NO_HOSTNAME"),
    Flag(
        "allocation-labels",
        choice("pod", "none"),
        "whether the labels namespace, pod and container are written. With none, few series change with pods: "
        "`gpugauge_allocation_info`, the replicas and, alone of a device's values, `gpugauge_allocation_busy_ratio`, "
        "which rules read",
        variable="GPUGAUGE_ALLOCATION_LABELS",
        default="pod",
    ),
    Flag(
        "mig-gpu-quantities",
        choice("once", "repeat"),
        "power, temperature, clocks and other quantities of a GPU with MIG devices: once per GPU, or repeated on each "
        "GPU instance, as dcgm-exporter does; sums over repeated series are wrong",
        variable="GPUGAUGE_MIG_GPU_QUANTITIES",
        default="once",
    ),
    Flag(
        "use-old-namespace",
        BOOLEAN,
        "write uuid, pod_name, pod_namespace and container_name, as dcgm-exporter 1.x did",
        "o",
        "DCGM_EXPORTER_USE_OLD_NAMESPACE",
    ),
    Flag(
        "replace-blanks-in-model-name",
        BOOLEAN,
        "write `-` for blanks in the label modelName",
        "rbmn",
        "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
    ),
)
