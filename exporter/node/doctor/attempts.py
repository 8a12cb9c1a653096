"""Reads each source that a configuration may use once, through a reader process with a deadline."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exporter.node import source_reasons
from exporter.node.config import NodeConfig
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.fields.device_source import ReaderConfig, SourceName, WantedField
from exporter.node.doctor.examination import CandidateName, SourceAttempt
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.reader.reasons import ReaderReason
from exporter.node.reader.supervisor import Reader, ReaderTimings
from exporter.reason import Reason
from exporter.source import SourceError

_NOT_YET = frozenset({ReaderReason.STARTING, ReaderReason.SLOW})
_MUTE = frozenset({ReaderReason.HUNG, DcgmReason.TIMEOUT})


class SourceCandidate(NamedTuple):
    """A source to be read."""

    candidate: CandidateName
    reader: ReaderConfig


def candidates(
    config: NodeConfig, fields: tuple[WantedField, ...], engine: str | None, others: Sequence[int]
) -> Iterator[SourceCandidate]:
    """The sources that this configuration would read, best first.

    No engine is embedded while another process has one: two can make the driver hang.
    """
    if config.source == "simulated":
        yield SourceCandidate("simulated", _reader_config(config, "simulated", fields))
    if config.source in {"auto", "dcgm"}:
        if engine is not None and (config.source == "auto" or config.remote is not None):
            yield SourceCandidate("host engine", _reader_config(config, "dcgm", fields, engine))
        elif engine is None and not others:
            yield SourceCandidate("embedded engine", _reader_config(config, "dcgm", fields))
    if config.source in {"auto", "nvml"}:
        yield SourceCandidate("nvml", _reader_config(config, "nvml", fields))


def _reader_config(
    config: NodeConfig, source: SourceName, fields: tuple[WantedField, ...], remote: str | None = None
) -> ReaderConfig:
    return ReaderConfig(
        source=source,
        fields=fields,
        interval=config.interval,
        remote=remote,
        scenario=str(config.scenario) if config.scenario else None,
        libdcgm=str(config.libdcgm) if config.libdcgm else None,
        bindings=str(config.bindings) if config.bindings else None,
        selections=config.selections,
        processes=config.processes.read,
    )


def attempt(candidate: SourceCandidate, command: Sequence[str], seconds: float) -> SourceAttempt:
    """Read a source once; its process is killed when it has not answered in time."""
    name, config = candidate
    reader = Reader(config, ReaderTimings(deadline=seconds, opening=seconds), command)
    address = config.remote or ""
    try:
        while True:
            try:
                return SourceAttempt(name, address, reader.read())
            except SourceError as error:
                if error.reason in _NOT_YET:
                    continue
                message = f"no answer within {seconds:g} s" if error.reason == ReaderReason.HUNG else str(error)
                return SourceAttempt(name, address, reason=_reason(name, error), message=message)
    finally:
        reader.close()


def _reason(candidate: CandidateName, error: SourceError) -> Reason | None:
    if candidate == "host engine" and error.reason in _MUTE:
        return DoctorReason.ENGINE_MUTE
    return reason_of(candidate, error.reason)


def reason_of(candidate: CandidateName, text: str) -> Reason | None:
    """The member that a reason from a reader process, which is sent as text, means; None where it is not known."""
    source = candidate if candidate in {"nvml", "simulated"} else "dcgm"
    return source_reasons.reason_of(source, text)
