"""Reads which GPUs, GPU instances and compute instances an engine lists, which shows cheaply whether that changed."""

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import Entity
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE, require_any


class HierarchyEntry(NamedTuple):
    """One row of the engine's MIG hierarchy: a GPU instance (ci -1) or a compute instance."""

    entity: Entity
    parent: Entity
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class EngineTopology:
    """The GPUs and instances that the engine lists.

    Read in every collection: while it is unchanged, groups and watches remain valid.
    """

    gpus: tuple[tuple[int, int], ...]
    """Engine id and state of each GPU."""
    hierarchy: bytes
    """The engine's rows, unchanged.

    They contain the GPU's UUID, the NVML ids and the profile, not only entity ids: an entity id is its GPU's id times
    the number of possible instances plus an index, and is used again after a change of MIG (4.6.0, source).
    """
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message): why the hierarchy or the state of a GPU cannot be read."""

    @property
    def readable(self) -> tuple[int, ...]:
        """The engine ids of the GPUs that have values."""
        return tuple(gpu_id for gpu_id, state in self.gpus if state not in layout.GPU_UNREADABLE)

    @property
    def detached(self) -> frozenset[int]:
        """The engine ids of the GPUs that have no driver."""
        return frozenset(gpu_id for gpu_id, state in self.gpus if state == layout.GPU_STATES["detached"])


def read_topology(connection: EngineConnection) -> EngineTopology:
    """Read the GPUs and instances that the engine lists now. Raises SourceError."""
    gpus, problems = _states(connection)
    try:
        rows = connection.hierarchy()
    except StatusError as error:
        if error.status in OF_THE_ENGINE:
            raise
        # An engine without root rights answers -29 (4.6.0, source); its GPUs can be read all the same.
        problem = (DcgmReason.HIERARCHY_UNREADABLE, f"MIG devices cannot be listed: {error}")
        return EngineTopology(gpus, b"", (*problems, problem))
    # Only the rows in use: what is behind them in the record is not defined.
    size = layout.Hierarchy.rows.offset + ctypes.sizeof(layout.HierarchyRow) * rows.count
    return EngineTopology(gpus, bytes(memoryview(rows).cast("B")[:size]), problems)


def _states(connection: EngineConnection) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[str, str], ...]]:
    """Read the state of each GPU; return them, and a problem for each GPU that has none."""
    states: list[tuple[int, int]] = []
    errors: dict[int, StatusError] = {}
    for gpu_id in connection.gpu_ids():
        try:
            states.append((gpu_id, connection.gpu_state(gpu_id)))
        except StatusError as error:
            if error.status in OF_THE_ENGINE:
                raise
            states.append((gpu_id, layout.STATE_UNANSWERED))
            errors[gpu_id] = error
    require_any([state for _, state in states if state != layout.STATE_UNANSWERED], list(errors.values()))
    problems = tuple((error.reason, f"state of the engine's GPU {gpu_id}: {error}") for gpu_id, error in errors.items())
    return tuple(states), problems


def hierarchy_rows(raw: bytes) -> tuple[HierarchyEntry, ...]:
    """Decode the `hierarchy` of an EngineTopology."""
    begin = layout.Hierarchy.rows.offset
    step = ctypes.sizeof(layout.HierarchyRow)
    rows = (layout.HierarchyRow.from_buffer_copy(raw, offset) for offset in range(begin, len(raw), step))
    return tuple(
        HierarchyEntry(
            (row.entity.kind, row.entity.id),
            (row.parent.kind, row.parent.id),
            row.nvml_instance_id,
            ci=_compute_instance_id(row),
        )
        for row in rows
    )


def _compute_instance_id(row: layout.HierarchyRow) -> int:
    """The field is unsigned, but on the row of a GPU instance it contains -1 (4.6.0, source)."""
    return int(ctypes.c_int32(row.nvml_compute_instance_id).value)
