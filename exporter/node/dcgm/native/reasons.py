"""Reasons of the `dcgm` source: why it could not be read, and what is wrong while it still answers.

`BY_STATUS` maps libdcgm's status codes to these reasons. No I/O, no state.
"""

from exporter.node.dcgm.native import layout
from exporter.reason import Reason


class DcgmReason(Reason):
    """Label `reason` of `gpugauge_source_problem{source="dcgm"}` and `gpugauge_source_errors_total`."""

    LIBRARY_MISSING = (
        "library_missing",
        "Neither libdcgm.so.4 nor libdcgm.so.3 can be loaded.",
        "Install DCGM in the image or mount it, or name the file with --libdcgm.",
    )
    LIBRARY_UNSUPPORTED = (
        "library_unsupported",
        "The libdcgm that was found is neither version 3 nor version 4.",
        "Use libdcgm 3.1 or newer; a newer major version needs a newer gpugauge.",
    )
    LIBRARY_NEWER_THAN_ENGINE = (
        "library_newer_than_engine",
        "libdcgm is newer than the host engine, which may not understand its requests.",
        "Use the libdcgm of the host engine's version, or update the host engine.",
    )
    LAYOUT_MISMATCH = (
        "layout_mismatch",
        "libdcgm answered with records of another layout than asked for; none of their values is exposed.",
        "Report the versions of libdcgm and of the host engine.",
    )
    CONNECTION_LOST = (
        "connection_lost",
        "The host engine cannot be reached, or the connection to it broke.",
        "Check that nv-hostengine runs and listens at the address given with -r. The exporter keeps trying.",
    )
    TIMEOUT = (
        "timeout",
        "The host engine did not answer in time.",
        "Check the load of the node and of the host engine.",
    )
    ENGINE_UNHEALTHY = (
        "engine_unhealthy",
        "The host engine reports that it is not healthy.",
        "Check the host engine's log and restart it.",
    )
    SECOND_ENGINE = (
        "second_engine",
        "Another engine seems to run beside the one that --source dcgm embeds. Two can make the driver hang.",
        "Stop one of them, name the host engine with -r, or use --source auto, which embeds no second one.",
    )
    ENGINE_DEAD = (
        "engine_dead",
        "The embedded engine found no driver. It looks for one only once, so the reader process is restarted.",
        "Check that the driver is loaded on the node and its libraries are visible in the container.",
    )
    ENGINE_ERROR = (
        "engine_error",
        "A call failed with a status that has no reason of its own; the log names call and status.",
        "Look the status up in dcgm_structs.h; report it if the node is healthy.",
    )
    NO_DEVICES = (
        "no_devices",
        "The embedded engine lists no GPU; the reader process is restarted.",
        "Check the driver and whether the container runtime hides the GPUs.",
    )
    DEVICE_UNIDENTIFIED = (
        "device_unidentified",
        "The engine lists a GPU without a UUID, so its series cannot be labeled.",
        "Check nvidia-smi on the node, unless the GPU is just being reset or lost: then it ends by itself.",
    )
    HIERARCHY_UNREADABLE = (
        "hierarchy_unreadable",
        "The MIG devices cannot be listed; GPUs are exposed without them.",
        "Check the host engine's log.",
    )
    LINKS_UNREADABLE = (
        "links_unreadable",
        "The NVLinks cannot be listed; fields of single NVLinks have no values.",
        "Check the host engine's log, or remove the rows of these fields from the counters file.",
    )
    SWITCHES_UNREADABLE = (
        "switches_unreadable",
        "The NVSwitches cannot be listed; their fields have no values.",
        "Check the host engine's log, or remove the rows of these fields from the counters file.",
    )
    CPUS_UNREADABLE = (
        "cpus_unreadable",
        "The CPUs and their cores cannot be listed; their fields have no values.",
        "Check the host engine's log, or remove the rows of these fields from the counters file.",
    )
    UNKNOWN_FIELD = (
        "unknown_field",
        "The engine does not know some configured fields and does not watch them.",
        "Remove the fields that the log names from the counters file, or update the host engine.",
    )
    BAD_PARAMETER = ("bad_parameter", "libdcgm rejected the arguments of a call.", "Report it with the log line.")
    NOT_SUPPORTED = (
        "not_supported",
        "The engine does not support a call on this hardware.",
        "None; what depends on the call is not exposed.",
    )
    NO_PERMISSION = (
        "no_permission",
        "The engine lacks permission for a call.",
        "Run the engine as root, with SYS_ADMIN where profiling needs it.",
    )
    REQUIRES_ROOT = ("requires_root", "The call needs an engine that runs as root.", "Run the engine as root.")
    DRIVER_MISSING = (
        "driver_missing",
        "The engine cannot load NVML: no driver.",
        "Load the NVIDIA driver on the node and make its libraries visible to the engine.",
    )
    DRIVER_ERROR = ("driver_error", "NVML reported an error to the engine.", "Check dmesg for NVRM and XID lines.")
    DRIVER_TIMEOUT = ("driver_timeout", "The driver did not answer the engine in time.", "Check dmesg for XID lines.")
    VERSION_MISMATCH = (
        "version_mismatch",
        "libdcgm and the engine disagree about the version of a request.",
        "Use the libdcgm of the engine's version.",
    )
    FUNCTION_MISSING = (
        "function_missing",
        "libdcgm lacks a function.",
        "Use libdcgm 3.1 or newer, for an address with vsock:// 4.5 or newer.",
    )
    GPU_LOST = ("gpu_lost", "A GPU fell off the bus.", "Drain the node and reboot it; replace the GPU if it recurs.")
    GPU_DETACHED = ("gpu_detached", "A GPU was unbound from the driver.", "None if planned; otherwise bind it again.")
    GPU_UNSUPPORTED = (
        "gpu_unsupported",
        "DCGM does not support a GPU, such as an old display adapter; the GPU counts as down.",
        "None; its values can only be read through NVML (--source nvml).",
    )
    RESET_REQUIRED = ("reset_required", "A GPU needs a reset.", "Drain the node and reset the GPU.")
    LIMIT_REACHED = (
        "limit_reached",
        "The engine has as many groups as it can have.",
        "Find the client of the host engine that does not destroy its groups, or restart the host engine.",
    )
    NAME_TAKEN = ("name_taken", "Another client has a group of this name.", "None; the exporter tries another name.")
    MODULE_NOT_LOADED = (
        "module_not_loaded",
        "An engine module, such as profiling, is not loaded.",
        "Install datacenter-gpu-manager-4-proprietary beside the engine.",
    )
    PROFILING_NOT_SUPPORTED = (
        "profiling_not_supported",
        "The GPU does not support profiling fields.",
        "None; tensor and engine activity are not exposed for it.",
    )
    PROFILING_IN_USE = (
        "profiling_in_use",
        "Another process has the hardware counters of the GPU.",
        "Stop the profiler (Nsight, another DCGM); the exporter then watches the fields again.",
    )
    PROFILING_MULTI_PASS = (
        "profiling_multi_pass",
        "These profiling fields cannot be measured at the same time on this GPU; the later ones are left out.",
        "Shorten the list of profiling fields in the counters file.",
    )
    PROFILING_MODULE_NOT_LOADED = (
        "profiling_module_not_loaded",
        "Profiling fields cannot be watched: the engine's profiling module is not loaded.",
        "Install datacenter-gpu-manager-4-proprietary beside the engine.",
    )
    PROFILING_NO_PERMISSION = (
        "profiling_no_permission",
        "Profiling fields cannot be watched: the engine lacks permission.",
        "Give the process with the engine SYS_ADMIN, or use a host engine that has it.",
    )
    PROFILING_REQUIRES_ROOT = (
        "profiling_requires_root",
        "Profiling fields cannot be watched: the engine must run as root.",
        "Run the engine as root.",
    )
    PROFILING_PAUSED = ("profiling_paused", "Profiling is paused in the engine.", "Resume it with dcgmi profile.")
    PROFILING_BLANK = (
        "profiling_blank",
        "All profiling values are blank: profiling is paused, a profiler has the counters, or SYS_ADMIN is missing.",
        "Resume it with dcgmi profile, end the profiler, or give SYS_ADMIN to the process with the engine.",
    )
    PROFILING_ENGINE_ERROR = (
        "profiling_engine_error",
        "Profiling fields cannot be watched: the engine failed with a status that has no reason of its own.",
        "Check the host engine's log.",
    )
    P2P_UNREADABLE = (
        "p2p_unreadable",
        "The peer-to-peer statuses of the GPUs cannot be read from this engine, or not be told apart.",
        "Use a newer libdcgm and host engine, or remove DCGM_EXP_P2P_STATUS from the counters file.",
    )
    XIDS_INCOMPLETE = (
        "xids_incomplete",
        "The engine did not return the XIDs that it has stored: of several between two reads only the last is counted.",
        "Report the versions of libdcgm and of the host engine, with the status in the log.",
    )
    PAUSED = ("paused", "The engine has paused what was asked for.", "Resume profiling with dcgmi profile.")


BY_STATUS: dict[int, DcgmReason] = {
    layout.BAD_PARAMETER: DcgmReason.BAD_PARAMETER,
    layout.GENERIC_ERROR: DcgmReason.ENGINE_ERROR,
    layout.NOT_SUPPORTED: DcgmReason.NOT_SUPPORTED,
    layout.NVML_ERROR: DcgmReason.DRIVER_ERROR,
    # Before dcgmInit and after dcgmShutdown; 4.6.0 answers CONNECTION_LOST there (measured).
    layout.UNINITIALIZED: DcgmReason.CONNECTION_LOST,
    layout.TIMEOUT: DcgmReason.TIMEOUT,
    layout.VERSION_MISMATCH: DcgmReason.VERSION_MISMATCH,
    layout.UNKNOWN_FIELD: DcgmReason.UNKNOWN_FIELD,
    layout.NO_PERMISSION: DcgmReason.NO_PERMISSION,
    layout.GPU_LOST: DcgmReason.GPU_LOST,
    layout.GPU_NOT_SUPPORTED: DcgmReason.GPU_UNSUPPORTED,
    layout.RESET_REQUIRED: DcgmReason.RESET_REQUIRED,
    layout.FUNCTION_NOT_FOUND: DcgmReason.FUNCTION_MISSING,
    layout.CONNECTION_LOST: DcgmReason.CONNECTION_LOST,
    layout.MAX_LIMIT: DcgmReason.LIMIT_REACHED,
    layout.DUPLICATE_KEY: DcgmReason.NAME_TAKEN,
    layout.REQUIRES_ROOT: DcgmReason.REQUIRES_ROOT,
    layout.MODULE_NOT_LOADED: DcgmReason.MODULE_NOT_LOADED,
    layout.PROFILING_NOT_SUPPORTED: DcgmReason.PROFILING_NOT_SUPPORTED,
    # Reported, before Hopper, where another process used the counters (DCGM issue 56, dcgm-exporter issue 7).
    layout.PROFILING_LIBRARY: DcgmReason.PROFILING_IN_USE,
    layout.PROFILING_MULTI_PASS: DcgmReason.PROFILING_MULTI_PASS,
    layout.PAUSED: DcgmReason.PAUSED,
    layout.NVML_NOT_LOADED: DcgmReason.DRIVER_MISSING,
    layout.NVML_DRIVER_TIMEOUT: DcgmReason.DRIVER_TIMEOUT,
    layout.GPU_DETACHED: DcgmReason.GPU_DETACHED,
}
"""The reason of a status (dcgmReturn_t of dcgm_structs.h); any other status is ENGINE_ERROR."""
