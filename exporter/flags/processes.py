"""The flags of the node exporter for what the processes of pods use of GPUs."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, choice, text_value
from exporter.node.attribution.matching.mps import CHOICES, MPS_ROOT

CONTAINER_LOG_LINKS = "/var/log/containers"
PROCESSES = (
    Flag(
        "process-metrics",
        BOOLEAN,
        "expose what the processes of each pod use of the GPUs: framebuffer, utilization, and GPUs that are not "
        "allocated to the pod. It needs the PID namespace of the node (hostPID: true)",
        variable="GPUGAUGE_PROCESS_METRICS",
    ),
    Flag(
        "host-proc",
        text_value("FOLDER"),
        "folder where /proc of the node is mounted; without it /proc is read, if the exporter is in the PID namespace "
        "of the node",
        variable="GPUGAUGE_HOST_PROC",
    ),
    Flag(
        "container-log-links",
        text_value("FOLDER"),
        "folder of the kubelet with a link for the log of each container, whose names say which pod a process belongs "
        "to, where there is no pod metadata. No log is read",
        variable="GPUGAUGE_CONTAINER_LOG_LINKS",
        default=CONTAINER_LOG_LINKS,
    ),
    Flag(
        "kubernetes-virtual-gpus",
        BOOLEAN,
        "add series of each pod, with the label vgpu, to used framebuffer and GPU utilization of GPUs that "
        "time-slicing or MPS shares, from their processes; includes --process-metrics",
        variable="KUBERNETES_VIRTUAL_GPUS",
    ),
    Flag(
        "replica-sharing",
        choice(*CHOICES),
        "how the replicas of a GPU share it; auto: by MPS where a control daemon has a pipe below --mps-root, else by "
        "time-slicing",
        variable="GPUGAUGE_REPLICA_SHARING",
        default="auto",
    ),
    Flag(
        "mps-root",
        text_value("FOLDER"),
        "folder of the device plugin with the pipes of MPS",
        variable="GPUGAUGE_MPS_ROOT",
        default=MPS_ROOT,
    ),
)
