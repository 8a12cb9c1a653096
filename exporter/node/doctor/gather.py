"""Asks the node everything once, with a deadline for each question, and changes nothing. The result is an Examination.

Native libraries are loaded in processes of their own: the reader process of the exporter, and one for each library.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.offer.offer import OfferedIds
from exporter.node.config import NodeConfig
from exporter.node.counters_source import counters_name, counters_source
from exporter.node.counters_watch import LoadedCounters, UnusableCountersError
from exporter.node.dcgm.host_engine.running_engines import listening_engine, other_engines
from exporter.node.doctor.attempts import attempt, candidates
from exporter.node.doctor.deadline import within
from exporter.node.doctor.examination import Examination, NativeLibrary
from exporter.node.doctor.gather_claims import known_claims
from exporter.node.doctor.gather_processes import process_places
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.pods.known_pods import KnownPods
from exporter.node.pods.pod import NodePods
from exporter.node.pods.sources import pods_of_node
from exporter.node.reader.supervisor import COMMAND
from exporter.node.service_account.reasons import ApiReason
from exporter.source import SourceError

T = TypeVar("T")
_WITH_DCGM = ("auto", "dcgm")
_POLL_SECONDS = 0.05
PROBE = (sys.executable, "-P", "-m", "exporter.node.doctor.native_probe")


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """How the node is reached; tests give other places and limits."""

    root: NodeRoot = NodeRoot()  # noqa: RUF009 - it does not change
    prefix: tuple[str, ...] = ()
    """Words before the commands of the processes that load native libraries, such as `env NAME=VALUE`."""
    listening: Callable[[], str | None] = listening_engine
    """Finds a host engine of this node."""
    check_seconds: float = 5.0
    """For one read of files, and for one check."""
    library_seconds: float = 10.0
    """For a process that loads a native library."""
    source_seconds: float = 15.0
    """For the first readings of a source."""


def gather(config: NodeConfig, access: NodeAccess) -> Examination:
    """Ask everything that this configuration would use."""
    counters = _counters(config, access)
    engine = config.remote or (_listening(access) if config.source in _WITH_DCGM else None)
    others = _others(access)
    fields = counters.counters.wanted if isinstance(counters, LoadedCounters) else ()
    command = (*access.prefix, *COMMAND, "text", "error")
    attempts = tuple(
        attempt(each, command, access.source_seconds) for each in candidates(config, fields, engine, others)
    )
    kubelet, offered = _kubelet(config, access)
    pods = _pods(config, access)
    return Examination(
        config=config,
        root=access.root,
        counters=counters,
        nvml=_nvml(config, access),
        dcgm=_dcgm(config, access),
        engine=engine,
        others=others,
        attempts=attempts,
        kubelet=kubelet,
        offered=offered,
        pods=pods,
        dra=known_claims(config, access.check_seconds, kubelet),
        processes=process_places(config, access.root, access.check_seconds, attempts, pods),
    )


def _counters(config: NodeConfig, access: NodeAccess) -> LoadedCounters | UnusableCountersError:
    try:
        return within(access.check_seconds, counters_source(config, time.monotonic).read)
    except UnusableCountersError as error:
        return error
    except TimeoutError as error:
        return UnusableCountersError(f"{counters_name(config)} cannot be read: {error}", f"cannot be read: {error}")


def _listening(access: NodeAccess) -> str | None:
    try:
        return within(access.check_seconds, access.listening)
    except TimeoutError:
        return None


def _others(access: NodeAccess) -> tuple[int, ...]:
    """The process ids of engines; none where /proc cannot be read."""
    try:
        return tuple(sorted(within(access.check_seconds, lambda: other_engines(access.root.path("/proc")))))
    except (TimeoutError, OSError):
        return ()


def _nvml(config: NodeConfig, access: NodeAccess) -> NativeLibrary | None:
    return _library(access, "nvml") if config.reads_this_machine else None


def _dcgm(config: NodeConfig, access: NodeAccess) -> NativeLibrary | None:
    if config.source not in _WITH_DCGM:
        return None
    return _library(access, "dcgm", str(config.libdcgm or ""), str(config.bindings or ""))


def _library(access: NodeAccess, *arguments: str) -> NativeLibrary:
    """What a process that loads the library prints; one that takes too long is killed."""
    try:
        process = subprocess.Popen([*access.prefix, *PROBE, *arguments], stdout=subprocess.PIPE)  # noqa: S603 - our own module
    except OSError as error:
        return NativeLibrary(reason=DoctorReason.CHECK_FAILED, message=f"no process could be started: {error}")
    try:
        output = within(access.library_seconds, lambda: process.communicate()[0])
        return msgspec.json.decode(output, type=NativeLibrary)
    except TimeoutError as error:
        process.kill()  # not waited for: a call that hangs in the kernel ends only when it returns
        return NativeLibrary(reason=DoctorReason.CHECK_TIMED_OUT, message=f"the library gave {error}")
    except msgspec.DecodeError:
        ended = f"the process that loaded it ended with status {process.returncode}"
        return NativeLibrary(reason=DoctorReason.CHECK_FAILED, message=ended)


def _kubelet(
    config: NodeConfig, access: NodeAccess
) -> tuple[Allocations | SourceError | None, OfferedIds | SourceError | None]:
    """What the kubelet lists, and, where it does, what it offers."""
    if not config.kubernetes:
        return None, None
    path: Path = access.root.path(config.kubelet_socket)
    kubelet = Kubelet(path, config.attribution_rules.gpus, time.monotonic, access.check_seconds)
    try:
        listed = _asked(kubelet.read, access)
        offered = None if isinstance(listed, SourceError) else _asked(kubelet.offered, access)
        return listed, None if isinstance(offered, SourceError) and offered.reason == "unimplemented" else offered
    finally:
        kubelet.close()


def _asked(call: Callable[[], T], access: NodeAccess) -> T | SourceError:
    try:
        # Longer than the call's own deadline: what may hang beside it is the look for the socket.
        return within(access.check_seconds * 2, call)
    except SourceError as error:
        return error
    except TimeoutError as error:
        return SourceError(KubeletReason.TIMEOUT, f"the kubelet's socket gave {error}")


def _pods(config: NodeConfig, access: NodeAccess) -> NodePods | SourceError | None:
    if config.pods.source == "off":
        return None
    gpus = config.attribution_rules.gpus
    pods = pods_of_node(config.pods, config.service_account, config.style.hostname, gpus)
    try:
        return within(access.check_seconds, lambda: _first(pods))
    except SourceError as error:
        return error
    except TimeoutError as error:
        return SourceError(ApiReason.UNREACHABLE, f"the API server gave {error}")
    finally:
        pods.close()


def _first(pods: KnownPods) -> NodePods:
    """Wait for the first list. Raises SourceError where it fails."""
    while (problem := pods.state.problem) is not None and problem[0] is ApiReason.CONNECTING:
        time.sleep(_POLL_SECONDS)
    return pods.read()
