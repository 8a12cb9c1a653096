"""Finds the meaning and the remedy of a reason of this node's sources by its label value.

Reasons of the reader process arrive through its pipe as texts, and those of several sources may have the same value.
"""

from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.audit.reasons import SOURCE as AUDIT_LOG
from exporter.node.audit.reasons import AuditReason
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.entities.component_selection import SelectionReason
from exporter.node.devices.readings.health import HealthReason
from exporter.node.devices.readings.mig_layout import MigReason
from exporter.node.devices.readings.processes import NAME as PROCESSES
from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.reader.reasons import ReaderReason
from exporter.node.state_file.reasons import SOURCE as STATE_FILE
from exporter.node.state_file.reasons import StateFileReason
from exporter.reason import Reason, find_reason


def reason_of(source: str, value: str) -> Reason | None:
    """The reason with this label value on a problem of a source; None where no table has it."""
    if isinstance(value, Reason):  # of what is read in this process: the kubelet, the state file and the audit log
        return value
    return find_reason(value, *_reasons_of(source))


def rejection_of(value: str) -> Reason | None:
    """The reason with this label value on a rejected or unsupported value."""
    return find_reason(value, RejectionReason)


def unmatched_of(value: str) -> Reason | None:
    """The reason with this label value on device ids that match no device."""
    return find_reason(value, UnmatchedReason)


def _reasons_of(source: str) -> tuple[type[Reason], ...]:
    """The closed sets that a source's reasons are from, its own first."""
    if source == STATE_FILE:
        return (StateFileReason,)
    if source == PROCESSES:
        return (ProcessReason,)
    if source == AUDIT_LOG:
        return (AuditReason,)
    if source == "simulated":
        from exporter.node.simulation.source import SimulationReason  # noqa: PLC0415 - for simulated nodes only

        return SimulationReason, SelectionReason, MigReason, ReaderReason, DcgmReason, NvmlReason, HealthReason
    if source == "nvml":
        return NvmlReason, SelectionReason, MigReason, ReaderReason, HealthReason, DcgmReason
    return DcgmReason, SelectionReason, MigReason, ReaderReason, HealthReason, NvmlReason
