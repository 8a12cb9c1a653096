"""Reasons of the reader process itself (start, deadline, crash, protocol), whichever source it reads."""

from exporter.reason import Reason


class ReaderReason(Reason):
    """Label `reason` of `gpugauge_source_problem` when the reader process is at fault, not its source."""

    STARTING = (
        "starting",
        "The reader process is still opening its source.",
        "None for a minute: an engine has to start. Then the process is started again.",
    )
    SLOW = (
        "slow",
        "A read needs over four fifths of the interval; its data are exposed up to 3 intervals (at least 5 s) late.",
        "Raise --collect-interval, or find out why the driver is slow (load, XIDs).",
    )
    HUNG = (
        "hung",
        "The reader process did not reply within 10 s (60 s at its start) and was killed.",
        "Check dmesg for XID lines: a hanging driver call is the usual cause.",
    )
    CRASHED = (
        "crashed",
        "The reader process ended by itself, or could not be started; the log names the signal or the exit status.",
        "A signal such as SIGSEGV is a fault of a native library: report it with the library's version.",
    )
    GARBLED = (
        "garbled",
        "The reader process sent something that is not a reply to the request, and was killed.",
        "Report it.",
    )
    RESTARTING = (
        "restarting",
        "The reader process has ended; the next one starts after a pause that doubles from 1 to 30 s.",
        "See the problem that was logged before.",
    )
    DRIVER_UNBOUND = (
        "driver_unbound",
        "The driver is being unbound from a GPU: no GPU is read, so that none is kept open, until 10 s later.",
        "None; if it recurs, look in dmesg and the log of whatever unbinds GPUs (GPU Operator, virtual machines).",
    )
    OTHER_ENGINE = (
        "other_engine",
        "Another process on this node may have a DCGM engine. Two can make the driver hang, so auto embeds none.",
        "Stop that process, which the log names (dcgm-exporter?), or run a host engine and name it for both with -r.",
    )
    PROFILING_PAUSED_BY_FILE = (
        "profiling_paused_by_file",
        "No profiling field is read, because the file that --profiling-pause-file names is there.",
        "Remove the file once the profiler has ended.",
    )
    INTERNAL = (
        "internal",
        "A source raised an exception that is not a SourceError; the log has the traceback.",
        "Report it: this is a defect in gpugauge.",
    )
    CLOSED = ("closed", "The exporter is stopping.", "None.")
