"""Labels and annotations by which schedulers state which GPUs, or which part of one, a pod was given."""

HAMI, VOLCANO = "hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new"
"""Annotations with the UUIDs of the GPUs of each container."""
GROUP_LABEL = "runai-gpu-group"
"""KAI and Run:ai: the pods that have parts of one GPU, and the one that occupies it, have one group.

Of further GPUs of a pod the name of the label has the group behind a slash.
"""
FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations of which KAI and Run:ai take the size of a part; a pod that has parts has one of them."""
FRACTION_CONTAINER = "gpu-fraction-container-name"
ANNOTATIONS = frozenset((HAMI, VOLCANO, *FRACTIONS, FRACTION_CONTAINER))


def is_group(label: str) -> bool:
    """Whether a label names a group of parts of a GPU."""
    return label == GROUP_LABEL or label.startswith(f"{GROUP_LABEL}/")
