"""Checks of the native libraries: where they are, their versions, and whether these fit each other."""

from collections.abc import Iterable

from exporter.node.doctor.attempts import reason_of
from exporter.node.doctor.driver import ELSEWHERE, module_version
from exporter.node.doctor.examination import CandidateName, Examination, NativeLibrary
from exporter.node.doctor.finding import Check, Finding, failed, limited, ok, skipped
from exporter.node.doctor.reasons import DoctorReason
from exporter.reason import Reason

_OWN = {str(member): member for member in (DoctorReason.CHECK_TIMED_OUT, DoctorReason.CHECK_FAILED)}


def _nvml(examination: Examination) -> Iterable[Finding]:
    library = examination.nvml
    if library is None:
        return [skipped(ELSEWHERE)]
    if library.reason:
        return [limited(_reason(library, "nvml"), library.message, works=examination.readings is not None)]
    return [ok(_described(library, library.file_version or library.version))]


def _same_version(examination: Examination) -> Iterable[Finding]:
    library, module = examination.nvml, module_version(examination.root)
    if library is None or not library.path or not module:
        return [skipped("there are not two versions to compare")]
    user = library.file_version or library.version
    if not user:
        return [skipped(f"the version of {library.path} is not known")]
    found = {"the kernel module": module, library.path: user, "libcuda beside it": library.cuda_library}
    known = {what: version for what, version in found.items() if version}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{what} is {version}" for what, version in known.items())
        return [failed(DoctorReason.DRIVER_VERSIONS_DIFFER, listed)]
    return [ok(f"kernel module and libraries are {module}")]


def _cuda(examination: Examination) -> Iterable[Finding]:
    library = examination.nvml
    if library is None or not library.cuda:
        return [skipped("the driver does not say" if library is not None else ELSEWHERE)]
    return [ok(f"the driver supports CUDA up to {library.cuda}")]


def _dcgm(examination: Examination) -> Iterable[Finding]:
    library = examination.dcgm
    if library is None:
        return [skipped(f"not used with --source {examination.config.source}")]
    if library.reason:
        return [limited(_reason(library, "embedded engine"), library.message, works=examination.readings is not None)]
    return [ok(_described(library, library.version))]


def _records(examination: Examination) -> Iterable[Finding]:
    library = examination.dcgm
    if library is None or library.reason:
        return [skipped("libdcgm is not used" if library is None else "there is no libdcgm")]
    if library.records:
        return [failed(DoctorReason.RECORD_SIZES_DIFFER, library.records)]
    if not library.compared:
        return [skipped("NVIDIA's Python bindings are not here to compare with")]
    return [ok(f"{library.compared} records have the sizes of NVIDIA's bindings")]


def _reason(library: NativeLibrary, candidate: CandidateName) -> Reason:
    found = reason_of(candidate, library.reason)
    return found or _OWN.get(library.reason, DoctorReason.CHECK_FAILED)


def _described(library: NativeLibrary, version: str) -> str:
    return f"{version or 'of unknown version'}, {library.path or 'at an unknown place'}"


CHECKS = (
    # First, because NVML reports the same with a code of its own, which says less.
    Check("libraries", "driver versions", _same_version),
    Check("libraries", "libnvidia-ml", _nvml),
    Check("libraries", "CUDA", _cuda),
    Check("libraries", "libdcgm", _dcgm),
    Check("libraries", "record sizes", _records),
)
