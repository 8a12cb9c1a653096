"""Whose failure a status of libdcgm is: the engine's, a GPU's or a field's. No I/O, no state.

Every other status can be the failure of a device, a field or the engine: where other devices and fields have none, it
is that of the device or field.
"""

from collections.abc import Sequence

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import StatusError

OF_THE_ENGINE = frozenset(
    {
        layout.UNINITIALIZED,
        layout.TIMEOUT,
        layout.VERSION_MISMATCH,
        layout.FUNCTION_NOT_FOUND,
        layout.CONNECTION_LOST,
        layout.MAX_LIMIT,
        layout.DUPLICATE_KEY,
        layout.NVML_NOT_LOADED,
        layout.NVML_DRIVER_TIMEOUT,
    }
)
"""Statuses that a call about any other device or field would have too, and perhaps after a long time."""
OF_THE_CONNECTION = frozenset({layout.UNINITIALIZED, layout.TIMEOUT, layout.CONNECTION_LOST})
"""Those of them after which nothing else can be asked either. Of the others, one about components costs only these."""
OF_A_GPU = frozenset({layout.GPU_LOST, layout.RESET_REQUIRED, layout.GPU_NOT_SUPPORTED, layout.GPU_DETACHED})
"""Statuses about a GPU, whatever the field."""
OF_A_FIELD = frozenset(
    {
        layout.BAD_PARAMETER,
        layout.NOT_SUPPORTED,
        layout.UNKNOWN_FIELD,
        layout.NO_PERMISSION,
        layout.REQUIRES_ROOT,
        layout.FIELD_UNSUPPORTED,
    }
)
"""Statuses that fields can have on every device while the engine is well."""


def require_any(accepted: Sequence[object], rejected: Sequence[StatusError]) -> None:
    """Raise the first of the errors where nothing at all was accepted, unless a GPU or its fields explain that."""
    if not accepted:
        for error in rejected:
            if error.status not in OF_A_GPU | OF_A_FIELD:
                raise error
