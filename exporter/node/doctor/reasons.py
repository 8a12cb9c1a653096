"""Reasons of `gpugauge doctor`, where what is wrong has no reason of a source or of the kubelet already."""

from exporter.reason import Reason


class DoctorReason(Reason):
    """Findings of `gpugauge doctor`, beside the reasons of the sources and of the kubelet; on no series."""

    NO_GPU = (
        "no_gpu",
        "The PCI bus of this node has no NVIDIA GPU.",
        "Run gpugauge on nodes with GPUs; here, check that the GPUs are powered and given to this machine.",
    )
    NOUVEAU_BOUND = (
        "nouveau_bound",
        "The driver nouveau is bound to a GPU, so that NVIDIA's driver cannot use it.",
        "Blacklist nouveau on the node, write the initramfs anew, and reboot.",
    )
    OTHER_DRIVER_BOUND = (
        "other_driver_bound",
        "A GPU is bound to another driver, such as vfio-pci, which gives it to virtual machines.",
        "None if that is planned; otherwise bind the GPU to the driver nvidia.",
    )
    GPU_UNBOUND = (
        "gpu_unbound",
        "NVIDIA's driver is loaded but not bound to a GPU.",
        "Check dmesg for NVRM lines: the driver may not support this GPU, or has given it up.",
    )
    MODULE_NOT_LOADED = (
        "module_not_loaded",
        "NVIDIA's kernel module is not loaded.",
        "Install the driver on the node if it has none, run modprobe nvidia there, and read what dmesg says.",
    )
    MODULE_UNSIGNED = (
        "module_unsigned",
        "Secure Boot is on and NVIDIA's kernel module has no signature: the kernel does not load it.",
        "Install the distribution's signed modules, or sign it and enroll the key (mokutil --import); then reboot.",
    )
    MODULE_KEY_UNKNOWN = (
        "module_key_unknown",
        "Secure Boot is on and NVIDIA's kernel module is not loaded: its key may not be enrolled.",
        "Run modprobe nvidia; if it says that the key was rejected, enroll it (mokutil --import) and reboot.",
    )
    MODULE_MISSING_FOR_KERNEL = (
        "module_missing_for_kernel",
        "There is no NVIDIA kernel module for the kernel that runs.",
        "Build it (dkms autoinstall) or install its package for this kernel, or boot a kernel that has it.",
    )
    DRIVER_VERSIONS_DIFFER = (
        "driver_versions_differ",
        "The kernel module and the driver's libraries are of two versions, as after an update of the driver.",
        "Reboot the node or load the new modules; where only a container has old libraries, restart the container.",
    )
    DEVICE_FILES_MISSING = (
        "device_files_missing",
        "Device files of GPUs (/dev/nvidiactl, /dev/nvidia0 and so on) are not here.",
        "In a container: runtimeClass nvidia and NVIDIA_VISIBLE_DEVICES=all. On the node: run nvidia-smi once as root.",
    )
    DEVICE_FILES_DENIED = (
        "device_files_denied",
        "Device files of GPUs may not be opened: by their mode, or because the container's cgroup forbids it.",
        "Give the container the devices through the NVIDIA runtime (NVIDIA_VISIBLE_DEVICES=all), not by mounting /dev.",
    )
    RECORD_SIZES_DIFFER = (
        "record_sizes_differ",
        "Records of NVIDIA's bindings have other sizes than those that gpugauge reads.",
        "Report both versions; until then read the GPUs through NVML (--source nvml).",
    )
    SYS_ADMIN_MISSING = (
        "sys_admin_missing",
        "The process lacks SYS_ADMIN, which an embedded engine needs for profiling before Hopper.",
        "Add SYS_ADMIN where tensor activity is missing, or use a host engine; nothing else needs it.",
    )
    NOT_ROOT = (
        "not_root",
        "The process does not run as user 0; the kubelet's socket usually admits no other.",
        "Run as user 0 with all capabilities dropped, as the manifest does.",
    )
    ENGINE_MUTE = (
        "engine_mute",
        "A host engine accepts connections but does not answer.",
        "Restart the host engine (systemctl restart nvidia-dcgm, or its pod), and check dmesg for XID lines.",
    )
    SECOND_ENGINE = (
        "second_engine",
        "Another process on this node has a DCGM engine; two engines can make the driver hang.",
        "Stop one of them (dcgm-exporter?), or name a host engine for both with -r.",
    )
    GPUS_DOWN = (
        "gpus_down",
        "GPUs are listed but cannot be read: lost, hung, or in need of a reset.",
        "Check dmesg for XID lines; drain the node and reset the GPU or reboot.",
    )
    GPUS_MISSING = (
        "gpus_missing",
        "Fewer GPUs are read than the node should have.",
        "Check dmesg for XID lines; in a container, check that NVIDIA_VISIBLE_DEVICES is all.",
    )
    COUNTERS_UNUSABLE = (
        "counters_unusable",
        "The counters file cannot be used: no field would be read.",
        "Mend the file or name another one with -f; without -f the built-in list is used.",
    )
    COUNTERS_ROWS_REJECTED = (
        "counters_rows_rejected",
        "Rows of the counters file cannot be used; the others are.",
        "Mend or remove these rows.",
    )
    FIELDS_NOT_READ = (
        "fields_not_read",
        "Rows of the counters file name fields that no source reads.",
        "None needed; remove the rows if they are not wanted.",
    )
    NO_POD_OF_NODE = (
        "no_pod_of_node",
        "The API server knows no pod of the node with this name, not even the exporter's.",
        "Set NODE_NAME from spec.nodeName, as the manifest does.",
    )
    DEVICE_PLUGIN_MISSING = (
        "device_plugin_missing",
        "No GPU device plugin has a socket beside the kubelet's: the node offers pods no GPU.",
        "Install or restart NVIDIA's device plugin on this node, and check its log.",
    )
    DEVICE_PLUGIN_MUTE = (
        "device_plugin_mute",
        "The socket of a GPU device plugin is there but nothing accepts connections: the plugin has ended.",
        "Restart the device plugin's pod on this node, and check its log.",
    )
    DEVICES_NOT_OFFERED = (
        "devices_not_offered",
        "The kubelet does not offer a device to pods: its device plugin calls it unhealthy, or does not list it.",
        "Read the device plugin's log for the XID; restart its pod once the GPU is well: it does not notice that.",
    )
    PORT_IN_USE = (
        "port_in_use",
        "Another process listens where gpugauge would serve.",
        "Stop that process (a leftover dcgm-exporter uses port 9400 too), or choose another port with --address.",
    )
    CONFIGURATION = (
        "configuration",
        "The flags or variables have something that is not used as it is.",
        "Change the flag or variable that is named.",
    )
    CHECK_TIMED_OUT = (
        "check_timed_out",
        "A check did not end in time; everything after it was still examined.",
        "Check dmesg for hanging calls: what the check reads may not answer to anybody.",
    )
    CHECK_FAILED = (
        "check_failed",
        "A check ended with an error of its own.",
        "Report it with the text of the finding: this is a defect in gpugauge.",
    )
