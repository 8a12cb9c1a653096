"""The labels that identify a device, a GPU, a pod or a workload in every series that rules read and record."""

DEVICE = ("cluster", "node", "UUID", "GPU_I_ID", "GPU_CI_ID")
"""A GPU or a MIG device."""

GPU = ("cluster", "node", "UUID")
"""A GPU: for quantities that exist once per GPU, MIG-enabled or not."""

POD = ("cluster", "namespace", "pod")
WORKLOAD = ("cluster", "namespace", "workload", "workload_type")
