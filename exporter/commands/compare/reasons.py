"""Why a series, a label or a value is another one after a switch: cause, meaning, remedy, and where it is explained."""

from collections.abc import Mapping
from enum import StrEnum

from exporter.reason import Reason


class SwitchCause(StrEnum):
    """What stands behind a difference."""

    BY_DESIGN = "by design"
    WRONG_SCOPE = "wrong scope in OLD"
    ANOTHER_TIME = "read at another time"
    SETTING = "setting"
    NOT_SUPPORTED = "not supported"
    FAULT = "fault"


HARMLESS = frozenset({SwitchCause.BY_DESIGN, SwitchCause.WRONG_SCOPE, SwitchCause.ANOTHER_TIME})
"""Causes that need nobody: a comparison with no others ends with exit status 0."""


class CompareReason(Reason):
    """Findings of `gpugauge compare`; on no series."""

    ONCE_PER_GPU = (
        "once_per_gpu",
        "OLD repeats a quantity of a GPU on each of its MIG devices; NEW has it once, without GPU_I_ID.",
        "None for sums, which become true; for queries by GPU_I_ID, --mig-gpu-quantities repeat.",
    )
    PER_MIG_DEVICE = (
        "per_mig_device",
        "OLD has the value for a whole GPU or GPU instance; NEW has it for each MIG device that has one of its own.",
        "None: sum or average by UUID gives the GPU.",
    )
    ONCE_PER_DEVICE = (
        "once_per_device",
        "OLD repeats the series of a device for each pod or replica that shares it; NEW has it once.",
        "Find the pods of a device in gpugauge_allocation_info.",
    )
    SHARED_DEVICE = (
        "shared_device",
        "The device is shared or has MIG devices: NEW names no pod on its series, and OLD names one of them.",
        "Join with gpugauge_allocation_info, which names every pod; for two fields, --kubernetes-virtual-gpus.",
    )
    XID_ENDED = (
        "xid_ended",
        "The code of an XID is exposed for five minutes in NEW, and until the next XID in OLD.",
        "None: gpugauge_xid_errors_total counts XIDs for good.",
    )
    XID_ZERO = (
        "xid_zero",
        "A GPU whose XIDs are received and that has had none has the value 0 in NEW, and no series in OLD.",
        "None: expressions with > 0 stay as they are.",
    )
    XID_WORDS = (
        "xid_words",
        "The words in err_msg are NEW's own; the code of the XID is in err_code.",
        "Select XIDs by err_code.",
    )
    OF_THE_PROGRAM = (
        "of_the_program",
        "The series describes the program itself (its process, its runtime) and no device.",
        "None.",
    )
    OWN_METRICS = (
        "own_metrics",
        "NEW has metrics beside those with DCGM names; docs/metrics.md lists them.",
        "None.",
    )
    MORE_COUNTERS = (
        "more_counters",
        "NEW has DCGM-named series that OLD does not expose, as of PCIe on a MIG-enabled GPU or of more counters.",
        "None; give NEW the counters file of OLD where the same series are wanted.",
    )
    READ_LATER = (
        "read_later",
        "The two values are near each other, or a counter went on: they were read at different times.",
        "None.",
    )
    METRIC_SPELLING = (
        "metric_spelling",
        "The same field has another of its names in NEW.",
        "Spell the field in NEW's counters file as in OLD's: a metric is named as that file spells it.",
    )
    HOST_LABEL = (
        "host_label",
        "The label with the node's name is spelled in another way: Hostname before dcgm-exporter 4.8.3, then hostname.",
        "Give NEW --hostname-label both, which writes both, until nothing asks for the old one.",
    )
    OLD_NAMESPACE = (
        "old_namespace",
        "Labels are spelled as in dcgm-exporter 1.x: uuid, pod_name, pod_namespace, container_name.",
        "Give NEW --use-old-namespace, which writes these; or ask for UUID, pod, namespace, container.",
    )
    HOST_VALUE = (
        "host_value",
        "The node has another name in NEW.",
        "Give the program the variable NODE_NAME, as the manifests do.",
    )
    LABEL_VALUE = (
        "label_value",
        "A label has another value in NEW.",
        "Compare again while no pod starts or ends; if it stays, check the kubelet's socket with gpugauge doctor.",
    )
    NO_ATTRIBUTION = (
        "no_attribution",
        "NEW names no pods on its series.",
        "Give it --kubernetes and the kubelet's socket, and leave out --allocation-labels none.",
    )
    POD_MISSING = (
        "pod_missing",
        "OLD names a pod on a device, and NEW none, although it names others.",
        "Compare again while no pod starts or ends; if it stays, gpugauge doctor shows unmatched device ids.",
    )
    POD_METADATA = (
        "pod_metadata",
        "NEW does not write pod_uid or labels of pods.",
        "Turn them on with the flags of OLD (--kubernetes-enable-pod-uid, …-pod-labels); see docs/pod-metadata.md.",
    )
    HPC_JOB = (
        "hpc_job",
        "NEW does not write the label hpc_job.",
        "Give it the folder of OLD with --hpc-job-mapping-dir.",
    )
    VIRTUAL_GPUS = (
        "virtual_gpus",
        "NEW does not write the label vgpu, the replicas of a shared GPU.",
        "Give NEW --kubernetes-virtual-gpus, which writes it on DCGM_FI_DEV_FB_USED and DCGM_FI_DEV_GPU_UTIL.",
    )
    DRA_LABELS = (
        "dra_labels",
        "NEW does not write the dra_* labels of devices of ResourceClaims.",
        "Give NEW --kubernetes-enable-dra, with the role of docs/dra.md.",
    )
    LABEL_ROW = (
        "label_row",
        "A field that is a label in OLD's counters file is no label in NEW.",
        "Add its row, of type label, to NEW's counters file.",
    )
    OTHER_LABEL = (
        "other_label",
        "NEW does not write a label that OLD writes.",
        "Labels of pods come with --pod-labels; see docs/pod-metadata.md.",
    )
    FROM_ELSEWHERE = (
        "from_elsewhere",
        "Neither exporter writes this label: a scrape configuration or a relabeling does, or nothing.",
        "Keep that configuration.",
    )
    GPU_QUANTITY_BY_INSTANCE = (
        "gpu_quantity_by_instance",
        "A quantity of a GPU is looked up by GPU_I_ID; NEW has it once per GPU, without that label.",
        "Give NEW --mig-gpu-quantities repeat, or leave the matcher out.",
    )
    NOT_IN_COUNTERS_FILE = (
        "not_in_counters_file",
        "NEW has no series of this metric and does not say that devices lack it: its counters file has no such row.",
        "Add the row to its counters file, or give it that of OLD with -f.",
    )
    HEALTH_BINDINGS = (
        "health_bindings",
        "NEW has no DCGM_EXP_GPU_HEALTH_STATUS: it needs a row in the counters file and NVIDIA's Python bindings.",
        "Add the row, and install datacenter-gpu-manager-4-core or give --dcgm-bindings.",
    )
    UNSUPPORTED_HERE = (
        "unsupported_here",
        "NEW reads the field, and its source has no value for these devices (gpugauge_field_unsupported_devices).",
        "With --source nvml some fields have none: use DCGM; otherwise the device does not have the quantity.",
    )
    FIELD_NOT_READ = (
        "field_not_read",
        "The field describes network adapters or is a structure: NEW reads none of these.",
        "Keep another source for it.",
    )
    UNKNOWN_FIELD = (
        "unknown_field",
        "The name is none of a DCGM field that NEW knows (docs/fields.md).",
        "Look for the field in docs/fields.md.",
    )
    SOURCE_DOWN = (
        "source_down",
        "NEW reads no devices now: gpugauge_source_up is 0.",
        "Run gpugauge doctor, with the flags of NEW, says why.",
    )
    DEVICE_MISSING = (
        "device_missing",
        "NEW has no series of a device that OLD has.",
        "Both must run on the same node; then gpugauge doctor says why a GPU cannot be read.",
    )
    VALUE_MISSING = (
        "value_missing",
        "NEW has the metric for other devices and not for this one.",
        "gpugauge_rejected_values_total and gpugauge_source_problem say what was wrong with its value.",
    )
    VALUE_DIFFERS = (
        "value_differs",
        "The two values are far apart.",
        "Compare again: values that move differ each time in another way; report one that always differs.",
    )
    LINE_REJECTED = (
        "line_rejected",
        "A line of a response is no sample of the text format.",
        "Where it is OLD's, nothing: Prometheus refuses it, too. Report one of NEW.",
    )


_SWITCHING = "docs/switching.md"
_LABELS, _MIG, _SHARING = (
    f"{_SWITCHING}#labels",
    f"{_SWITCHING}#under-mig",
    f"{_SWITCHING}#under-time-slicing-mps-and-other-sharing",
)
_ALSO, _COUNTERS = f"{_SWITCHING}#also-different", f"{_SWITCHING}#counters-file"
FACTS: Mapping[CompareReason, tuple[SwitchCause, str]] = {
    CompareReason.ONCE_PER_GPU: (SwitchCause.WRONG_SCOPE, _MIG),
    CompareReason.PER_MIG_DEVICE: (SwitchCause.BY_DESIGN, _MIG),
    CompareReason.ONCE_PER_DEVICE: (SwitchCause.WRONG_SCOPE, _SHARING),
    CompareReason.SHARED_DEVICE: (SwitchCause.BY_DESIGN, _SHARING),
    CompareReason.XID_ENDED: (SwitchCause.BY_DESIGN, _ALSO),
    CompareReason.XID_ZERO: (SwitchCause.BY_DESIGN, _ALSO),
    CompareReason.XID_WORDS: (SwitchCause.BY_DESIGN, _ALSO),
    CompareReason.OF_THE_PROGRAM: (SwitchCause.BY_DESIGN, "docs/metrics.md"),
    CompareReason.OWN_METRICS: (SwitchCause.BY_DESIGN, "docs/metrics.md"),
    CompareReason.MORE_COUNTERS: (SwitchCause.BY_DESIGN, _COUNTERS),
    CompareReason.READ_LATER: (SwitchCause.ANOTHER_TIME, _SWITCHING),
    CompareReason.METRIC_SPELLING: (SwitchCause.SETTING, _COUNTERS),
    CompareReason.HOST_LABEL: (SwitchCause.SETTING, _LABELS),
    CompareReason.OLD_NAMESPACE: (SwitchCause.SETTING, _LABELS),
    CompareReason.HOST_VALUE: (SwitchCause.SETTING, _LABELS),
    CompareReason.LABEL_VALUE: (SwitchCause.FAULT, _LABELS),
    CompareReason.NO_ATTRIBUTION: (SwitchCause.SETTING, _LABELS),
    CompareReason.POD_MISSING: (SwitchCause.FAULT, _LABELS),
    CompareReason.POD_METADATA: (SwitchCause.SETTING, "docs/pod-metadata.md"),
    CompareReason.HPC_JOB: (SwitchCause.SETTING, _LABELS),
    CompareReason.VIRTUAL_GPUS: (SwitchCause.SETTING, _SHARING),
    CompareReason.DRA_LABELS: (SwitchCause.SETTING, "docs/dra.md"),
    CompareReason.LABEL_ROW: (SwitchCause.SETTING, _COUNTERS),
    CompareReason.OTHER_LABEL: (SwitchCause.SETTING, "docs/pod-metadata.md"),
    CompareReason.FROM_ELSEWHERE: (SwitchCause.BY_DESIGN, _LABELS),
    CompareReason.GPU_QUANTITY_BY_INSTANCE: (SwitchCause.SETTING, _MIG),
    CompareReason.NOT_IN_COUNTERS_FILE: (SwitchCause.SETTING, _COUNTERS),
    CompareReason.HEALTH_BINDINGS: (SwitchCause.SETTING, _COUNTERS),
    CompareReason.UNSUPPORTED_HERE: (SwitchCause.NOT_SUPPORTED, "docs/fields.md"),
    CompareReason.FIELD_NOT_READ: (SwitchCause.NOT_SUPPORTED, "docs/fields.md"),
    CompareReason.UNKNOWN_FIELD: (SwitchCause.NOT_SUPPORTED, "docs/fields.md"),
    CompareReason.SOURCE_DOWN: (SwitchCause.FAULT, "docs/doctor.md"),
    CompareReason.DEVICE_MISSING: (SwitchCause.FAULT, "docs/doctor.md"),
    CompareReason.VALUE_MISSING: (SwitchCause.FAULT, "docs/troubleshooting.md"),
    CompareReason.VALUE_DIFFERS: (SwitchCause.FAULT, _SWITCHING),
    CompareReason.LINE_REJECTED: (SwitchCause.FAULT, _ALSO),
}
"""The cause of each reason, and the page that explains it."""
