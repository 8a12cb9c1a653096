"""The types of what NVML knows of the processes on GPUs, and the reasons why something of it is missing.

A process is a number here (its PID), which is never exposed; exporter.node.processes finds the pod that it belongs to.
"""

import msgspec

from exporter.reason import Reason

NAME = "processes"
"""The label `source` of what the processes are read from: NVML for the numbers, /proc for whose they are."""
MAX_PROCESSES = 1024
"""Of one GPU. A driver has a few dozen; with more, what a pod uses is not known."""


class ProcessReason(Reason):
    """Label `reason` of `gpugauge_source_problem` with the source processes."""

    PROCESSES_NOT_VISIBLE = (
        "processes_not_visible",
        "The exporter is in a PID namespace of its own, so NVML lists no process of others.",
        "Run it with hostPID: true, as the component deploy/process-metrics does.",
    )
    PROC_UNREADABLE = (
        "proc_unreadable",
        "The folder of --host-proc cannot be read, or it hides the processes of other users (hidepid).",
        "Mount the node's /proc read-only, without hidepid or with the gid of the exporter.",
    )
    PROCESS_UNREADABLE = (
        "process_unreadable",
        "The control group of a process on a GPU cannot be read, or names two pods: that GPU has no value per pod.",
        "See the log for the GPU; /proc must be readable for the user of the exporter.",
    )
    PODS_UNKNOWN = (
        "pods_unknown",
        "Nothing says which pod a process belongs to: neither pod metadata nor the folder of --container-log-links.",
        "Mount the node's /var/log/containers read-only, or switch pod metadata on.",
    )
    POD_UNKNOWN = (
        "pod_unknown",
        "A process belongs to a pod of which nothing is known, so its use is in no series.",
        "None if it passes after a few intervals: the pod was just started or deleted.",
    )
    NVML_MISSING = (
        "nvml_missing",
        "The devices are read from DCGM, and NVML, which alone lists processes, cannot be opened; see the log.",
        "Give the container libnvidia-ml.so.1 and the devices (NVIDIA_VISIBLE_DEVICES=all).",
    )
    NVML_SLOW = (
        "nvml_slow",
        "NVML did not list the processes in time; the devices are read from DCGM as ever.",
        "Check dmesg for XID lines if it lasts.",
    )
    NOT_LISTED = (
        "not_listed",
        "No process is listed because the devices cannot be read, or their host engine is on another machine.",
        "See the problem of the source of the devices; run the exporter on the machine of the GPUs.",
    )
    NOT_SUPPORTED = (
        "not_supported",
        "The driver does not list the processes of a GPU.",
        "None on this hardware, such as in a virtual machine with a vGPU.",
    )
    NO_PERMISSION = (
        "no_permission",
        "NVML may not list the processes of a GPU.",
        "MIG devices need access to /dev/nvidia-caps, or root.",
    )
    FAILED = (
        "failed",
        "NVML's list of the processes of a GPU failed; the log has its return code.",
        "Look the return code up in nvml.h (nvmlReturn_t); the other GPUs are exposed.",
    )
    TOO_MANY = (
        "too_many",
        f"A GPU has more than {MAX_PROCESSES} processes or an endless list of samples: it has no value per pod.",
        "End the processes that nobody needs.",
    )


class GpuProcess(msgspec.Struct, frozen=True, array_like=True):
    """A process that uses a GPU, or a MIG device of it."""

    pid: int
    """In the PID namespace of the reader process."""
    gi: int = -1
    """GPU instance id; -1 on a GPU that is not MIG-enabled."""
    ci: int = -1
    memory: int | None = None
    """Bytes of framebuffer; None where NVML does not know it."""
    sm: float | None = None
    """Share of the time since the read before in which a multiprocessor ran a kernel of it; None where not known."""
    mps: bool = False
    """Whether it is a client of MPS."""


class GpuProcesses(msgspec.Struct, frozen=True, array_like=True):
    """The processes of one GPU."""

    uuid: str
    processes: tuple[GpuProcess, ...] = ()
    """In the order of their PIDs; one that uses several MIG devices is there for each."""
    sm_known: bool = False
    """Whether the utilization of each is known."""
    problem: tuple[str, str] | None = None
    """(reason, message): why the processes are not known."""


class ProcessReadings(msgspec.Struct, frozen=True, array_like=True):
    """The processes of the GPUs that can be read."""

    gpus: tuple[GpuProcesses, ...] = ()
    problem: tuple[str, str] | None = None
    """(reason, message): why those of no GPU are known."""
