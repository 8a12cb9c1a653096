"""Reasons of the state file: why it is not in use."""

from exporter.reason import Reason

SOURCE = "state_file"
"""The value of the label `source` of these problems."""


class StateFileReason(Reason):
    """Label `reason` of `gpugauge_source_problem{source="state_file"}`."""

    UNREADABLE = (
        "unreadable",
        "The state file cannot be used; nothing is remembered from before the start, and the file is left as it is.",
        "Repair the file that the log names, or remove it: it is then written anew.",
    )
    UNWRITABLE = (
        "unwritable",
        "The state file cannot be written; a restart forgets what has changed since it was written last.",
        "Give --state-file a path in an existing folder that the exporter may write to and that has free space.",
    )


class StateFileError(Exception):
    """The state file cannot be read or written. The text is why, on one line."""

    def __init__(self, reason: StateFileReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
