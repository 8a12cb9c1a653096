"""Reasons of the audit log: why it is not written, and why for a time nothing is known of allocations."""

from exporter.reason import Reason

SOURCE = "audit_log"
"""The value of the label `source` of these problems."""


class AuditReason(Reason):
    """Label `reason` of `gpugauge_source_problem{source="audit_log"}`."""

    UNWRITABLE = (
        "unwritable",
        "The audit log cannot be written; what is observed waits in memory, for some hours at the usual interval.",
        "Give --audit-log a path in an existing folder that the exporter may write to and that has free space.",
    )
    UNREADABLE = (
        "unreadable",
        "What --audit-log names cannot be read or is no audit log; it is left as it is, and nothing is written.",
        "Move the file that the log names away, or give --audit-log another path.",
    )
    IN_USE = (
        "in_use",
        "Another process writes the same audit log.",
        "Give each exporter an audit log of its own; after an update it is enough to wait until the old one has ended.",
    )
    LOST = (
        "lost",
        "Observations are lost, because more of them wait for the audit log than are kept; the log will have a gap.",
        "Make the disk of the audit log writable and fast enough; the other problem of this source says what is wrong.",
    )


class GapReason(Reason):
    """The key `reason` of a gap in an audit log: why it was not known what was allocated."""

    KUBELET = (
        "kubelet",
        "The kubelet did not answer.",
        "None needed after a restart of the kubelet; otherwise see the reasons of the source kubelet.",
    )
    DEVICES = (
        "devices",
        "The devices could not be read, so that the kubelet's device ids had no meaning.",
        "See the reasons of the source of the devices in that time.",
    )
    NOT_RUNNING = (
        "not_running",
        "No exporter wrote the log.",
        "None needed after an update or a restart; otherwise see why the exporter did not run.",
    )
    LATE = (
        "late",
        "Collections came much later than the interval says, as on a machine that was suspended or overloaded.",
        "Give the exporter enough CPU time.",
    )
    LOST = (
        "lost",
        "The log could not be written for so long that observations were lost.",
        "Make the disk of the audit log writable and fast enough.",
    )
    CLOCK = (
        "clock",
        "The clock of the node was set back: times before and after that overlap.",
        "Let the clock be kept by a service that does not set it back, such as chrony.",
    )
    UNMATCHED = (
        "unmatched",
        "The kubelet listed a device id that may mean this device, and that matched no device.",
        "See the reasons of gpugauge_unmatched_device_ids in that time.",
    )
    METADATA = (
        "metadata",
        "Only pod metadata knew of an allocation of this device, and it was not there.",
        "See the reasons of the source kubernetes in that time.",
    )
    RESERVED = (
        "reserved",
        "A reservation pod occupied the GPU, of which a scheduler gave out parts: the kubelet does not list to whom.",
        "None: ask the scheduler's own records who had a part of it.",
    )


class AuditLogError(Exception):
    """The audit log cannot be used. The text is why, on one line."""

    def __init__(self, reason: AuditReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
