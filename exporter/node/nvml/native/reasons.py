"""Reasons of the `nvml` source: why it could not be read, or what is wrong although it could."""

from exporter.reason import Reason


class NvmlReason(Reason):
    """Label `reason` of `gpugauge_source_problem{source="nvml"}` and `gpugauge_source_errors_total`."""

    LIBRARY_MISSING = (
        "library_missing",
        "libnvidia-ml.so.1 cannot be loaded.",
        "In a pod: runtimeClassName: nvidia, and NVIDIA_DRIVER_CAPABILITIES=utility. On the node: install the driver.",
    )
    DRIVER_NOT_LOADED = (
        "driver_not_loaded",
        "The NVIDIA driver is not loaded.",
        "Load the driver on the node; NVML is then opened by itself.",
    )
    DRIVER_MISMATCH = (
        "driver_mismatch",
        "The driver and its library have different versions: the driver was replaced. The reader process is replaced.",
        "Usually none. If it lasts 5 minutes, /livez fails, and the kubelet restarts the container with the new one.",
    )
    NOT_INITIALIZED = (
        "not_initialized",
        "NVML lost its connection to the driver.",
        "None; NVML is opened again by itself.",
    )
    NO_PERMISSION = (
        "no_permission",
        "NVML may not open the GPUs: no access to /dev/nvidia*.",
        "Give the container the devices (NVIDIA_VISIBLE_DEVICES=all) and the permission to open them.",
    )
    TIMEOUT = ("timeout", "The driver did not answer NVML in time.", "Check dmesg for XID lines.")
    FAILED = (
        "failed",
        "NVML could not be opened; the log has its return code.",
        "Look the return code up in nvml.h (nvmlReturn_t).",
    )
    GPU_LOST = (
        "gpu_lost",
        "NVML lists a GPU that is lost and was never seen before, so it has no UUID.",
        "Drain the node and reboot it; replace the GPU if it recurs.",
    )
    GPU_UNREADABLE = (
        "gpu_unreadable",
        "A GPU cannot be opened; the log has its index and NVML's return code.",
        "Look the return code up in nvml.h (nvmlReturn_t); the other GPUs are exposed.",
    )
    GPU_FAILED = (
        "gpu_failed",
        "Reading a GPU failed because of a defect in gpugauge or an answer of NVML that it does not know.",
        "Report it with the message in the log; the other GPUs are exposed.",
    )
    GPU_HUNG = (
        "gpu_hung",
        "A call of NVML for a GPU has not returned in time; the log has its index.",
        "Check dmesg for XID lines; drain the node and reset the GPU or reboot. The other GPUs are exposed.",
    )
    TEXT_UNREADABLE = (
        "text_unreadable",
        "A name, serial number, PCI id or UUID of a GPU is not UTF-8: its label is empty, that of a UUID escaped.",
        "Check the GPU's InfoROM, and report it to its vendor; everything else of the GPU is exposed.",
    )
    RESERVED_INCLUDED = (
        "reserved_included",
        "The driver is older than R510: used framebuffer includes what the driver reserves; no share of it is exposed.",
        "Update the driver; until then used framebuffer is some hundred MiB too high, also on an unallocated GPU.",
    )
    MIG_UNREADABLE = (
        "mig_unreadable",
        "MIG devices of a GPU cannot be read; the log has NVML's return code.",
        "Give the container access to /dev/nvidia-caps, or look the return code up in nvml.h.",
    )
    VGPUS_UNREADABLE = (
        "vgpus_unreadable",
        "The vGPUs of a GPU cannot be listed; the log has NVML's return code.",
        "Look the return code up in nvml.h (nvmlReturn_t); the GPU itself is exposed.",
    )
    VGPUS_LEFT_OUT = (
        "vgpus_left_out",
        "A GPU has more vGPUs than are read of one; the log has both numbers.",
        "Report it with the GPU model and the version of the vGPU software; the others are exposed.",
    )
