"""Checks of the sources: other engines, which sources work now, and what they say of the GPUs."""

from collections.abc import Iterable, Iterator

from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.readings.health import HealthReason
from exporter.node.devices.readings.mig_layout import MigReason, gpus_without_instances, instances_without_compute
from exporter.node.devices.readings.readings import Readings
from exporter.node.doctor.attempts import reason_of
from exporter.node.doctor.device_files import gpu_files
from exporter.node.doctor.driver import gpus_on_bus
from exporter.node.doctor.examination import Examination, SourceAttempt
from exporter.node.doctor.finding import Check, Finding, failed, limited, note, ok, skipped
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.reason import Reason

OWN_READER = "exporter.node.reader"
"""In the command line of a reader process of gpugauge."""
NO_READINGS = "nothing was read"
_NOTHING_MISSING: frozenset[Reason] = frozenset(
    {
        DcgmReason.NOT_SUPPORTED,
        DcgmReason.PROFILING_NOT_SUPPORTED,
        DcgmReason.GPU_UNSUPPORTED,
        DcgmReason.LINKS_UNREADABLE,
        DcgmReason.P2P_UNREADABLE,
        NvmlReason.RESERVED_INCLUDED,
        NvmlReason.TEXT_UNREADABLE,
        HealthReason.HEALTH_NOT_IN_SOURCE,
    }
)
"""Problems that nobody can mend, or that cost a detail alone."""


def _engines(examination: Examination) -> Iterable[Finding]:
    config, others, engine = examination.config, examination.others, examination.engine
    embeds = config.source == "dcgm" and config.remote is None
    if embeds and engine is not None:
        return [failed(DoctorReason.SECOND_ENGINE, f"a host engine listens at {engine}, and -r does not name it")]
    if not config.reads_this_machine or config.source == "nvml" or not others:
        return [ok("no process is known to have one") if not others else skipped("not used by this configuration")]
    commands = {pid: examination.root.command(pid) for pid in others}
    listed = ", ".join(f"{program} ({pid})" for pid, (program, _) in commands.items())
    if all(OWN_READER in line for _, line in commands.values()):
        return [note(f"a running gpugauge has one: {listed}; no second one is started")]
    if len(others) > 1 or embeds:
        return [failed(DoctorReason.SECOND_ENGINE, listed)]
    if engine is not None:
        return [ok(f"one host engine: {listed}")]
    return [note(f"{listed}: no second one is started, NVML is read", DoctorReason.SECOND_ENGINE)]


def _sources(examination: Examination) -> Iterable[Finding]:
    attempts = examination.attempts
    if not attempts:
        return [skipped("a process on this node has an engine already; a second one is not started")]
    return [_attempt(each, examination) for each in attempts]


def _attempt(attempt: SourceAttempt, examination: Examination) -> Finding:
    readings = attempt.readings
    if readings is not None:
        chosen = " (read from)" if attempt is examination.chosen else ""
        return ok(f"{attempt.title}{chosen}: {_counted(readings)}{_versions(readings)}")
    named = attempt.candidate == "host engine" and examination.config.remote is not None
    works = examination.readings is not None and not named and attempt.reason is not DoctorReason.ENGINE_MUTE
    return limited(attempt.reason or DoctorReason.CHECK_FAILED, f"{attempt.title}: {attempt.message}", works=works)


def _counted(readings: Readings) -> str:
    gpus = sum(device.gi < 0 for device in readings.inventory)
    mig = len({(device.uuid, device.gi) for device in readings.inventory if device.gi >= 0})
    return f"{gpus} GPU{'s' * (gpus != 1)}" + (f", {mig} GPU instance{'s' * (mig != 1)}" if mig else "")


def _versions(readings: Readings) -> str:
    shown = {"dcgm": "DCGM", "driver": "driver"}
    return "".join(f", {shown[key]} {text}" for key, text in readings.versions.items() if key in shown and text)


def _gpus(examination: Examination) -> Iterator[Finding]:
    readings, config = examination.readings, examination.config
    if readings is None:
        yield skipped(NO_READINGS)
        return
    gpus = sum(device.gi < 0 for device in readings.inventory)
    expected = max(config.expected_gpus, _given(examination.root) if config.reads_this_machine else 0)
    if readings.down:
        yield failed(DoctorReason.GPUS_DOWN, ", ".join(readings.down))
    if gpus < expected:
        yield failed(DoctorReason.GPUS_MISSING, f"{gpus} of {expected}")
    if not readings.down and gpus >= expected:
        yield ok(f"{gpus} of {expected or gpus} can be read")


def _given(root: NodeRoot) -> int:
    """How many GPUs there should be: those on the bus, or those whose device files a container was given."""
    on_bus, files = len(gpus_on_bus(root)), len(gpu_files(root))
    return min(on_bus, files) if files else on_bus


def _problems(examination: Examination) -> Iterator[Finding]:
    chosen = examination.chosen
    if chosen is None or chosen.readings is None:
        yield skipped(NO_READINGS)
        return
    for text, message in dict(chosen.readings.problems).items():
        reason = reason_of(chosen.candidate, text)
        works = reason is None or reason in _NOTHING_MISSING
        yield limited(reason or DoctorReason.CHECK_FAILED, message, works=works)
    if not chosen.readings.problems:
        yield ok(f"{chosen.candidate} reports none")


def _mig(examination: Examination) -> Iterator[Finding]:
    readings = examination.readings
    if readings is None:
        yield skipped(NO_READINGS)
        return
    gpus = [device for device in readings.inventory if device.gi < 0 and device.mig_enabled]
    empty, bare = gpus_without_instances(readings), instances_without_compute(readings)
    if empty:
        names = ", ".join(f"GPU {gpu.index} ({gpu.uuid})" for gpu in empty)
        yield failed(MigReason.MIG_WITHOUT_INSTANCES, f"without instances: {names}")
    if bare:
        names = ", ".join(f"GPU {device.index} instance {device.gi}" for device in bare)
        yield failed(MigReason.MIG_WITHOUT_COMPUTE_INSTANCES, names)
    if not empty and not bare:
        yield ok(f"{len(gpus)} MIG-enabled GPU{'s' * (len(gpus) != 1)}" if gpus else "no GPU is in MIG mode")


CHECKS = (
    Check("sources", "engines on this node", _engines),
    Check("sources", "source", _sources),
    Check("sources", "GPUs", _gpus),
    Check("sources", "problems", _problems),
    Check("sources", "MIG", _mig),
)
