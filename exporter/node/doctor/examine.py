"""Runs every check on what was gathered, each with a deadline, in the order in which one thing depends on another."""

from collections.abc import Sequence
from itertools import chain

from exporter.node.config import NodeConfig
from exporter.node.doctor import (
    audit,
    claims,
    counters,
    device_files,
    driver,
    kubernetes,
    libraries,
    pod_labels,
    pods,
    port,
    privileges,
    processes,
    sources,
)
from exporter.node.doctor.deadline import within
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, CheckResult, DoctorReport, Finding, failed
from exporter.node.doctor.gather import NodeAccess, gather
from exporter.node.doctor.reasons import DoctorReason

CHECKS: tuple[Check, ...] = tuple(
    chain.from_iterable(
        area.CHECKS
        for area in (
            *(driver, device_files, libraries, privileges, sources, counters),
            *(kubernetes, pods, claims, pod_labels, processes, audit, port),
        )
    )
)
"""In the order of dependency: the first that fails is the cause to look at first."""


def examine(config: NodeConfig, access: NodeAccess) -> DoctorReport:
    """Examine the node for this configuration."""
    return judged(gather(config, access), access.check_seconds)


def judged(examination: Examination, seconds: float, checks: Sequence[Check] = CHECKS) -> DoctorReport:
    """Run the checks; one that hangs or fails costs its own findings alone."""
    results = [
        CheckResult(check.area, check.name, finding)
        for check in checks
        for finding in _findings(check, examination, seconds)
    ]
    config = examination.config
    return DoctorReport(config.style.hostname, config.source, tuple(results), read=examination.readings is not None)


def _findings(check: Check, examination: Examination, seconds: float) -> list[Finding]:
    try:
        return within(seconds, lambda: list(check.run(examination)))
    except TimeoutError as error:
        return [failed(DoctorReason.CHECK_TIMED_OUT, str(error))]
    except Exception as error:  # noqa: BLE001 - a defect of one check must not cost the others
        return [failed(DoctorReason.CHECK_FAILED, f"{type(error).__name__}: {error}")]
