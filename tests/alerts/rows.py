"""The rows of the matrix of GPUPodLowUtilization: pods, measured values, and who has the alert at each minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.alerts.fleet import FLAVORS, Gpu, Pod, always

ALERT = "GPUPodLowUtilization"
UNKNOWN = "GPUPodLowUtilizationUnknownOwner"
OWN = tuple(flavor.name for flavor in FLAVORS if flavor.own)
STOCK = tuple(flavor.name for flavor in FLAVORS if not flavor.own)
ALL = (*OWN, *STOCK)

P = frozenset({"p"})
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Row:
    name: str
    gpus: tuple[Gpu, ...]
    firing: Mapping[float, frozenset[str]]
    pods: tuple[Pod, ...] = (Pod(),)
    namespace_exempt_from: str = ""
    flavors: tuple[str, ...] = field(default=ALL)


def never(*minutes: float) -> dict[float, frozenset[str]]:
    return dict.fromkeys(minutes or (25, 36, 50, 75), NONE)


def idle(**more: object) -> Gpu:
    return Gpu(always(0), **more)  # type: ignore[arg-type]


def cycle(pattern: str) -> str:
    return " ".join([pattern] * 6)


FIRES = {34.0: NONE, 36.0: P, 60.0: P}
RENEWED = (("uid-1", "1x99 stale"), ("uid-2", "_x100 1x80"))
GAPS = cycle("0.1x11 stale _x16")
"""Six minutes of low samples, then nine minutes without samples; the real load is unknown."""

ROWS = (
    Row("01-busy", (Gpu(always(0.9)),), never()),
    Row("02-idle", (idle(),), {10: NONE, 25: NONE, 34: NONE, 36: P, 75: P}),
    Row("03-equal", (Gpu(always(0.3)),), never()),
    Row("04-just-below", (Gpu(always(0.29)),), FIRES),
    Row("05-burst-of-5", (Gpu(cycle("1x9 0x19")),), never(*(30 + 0.5 * n for n in range(0, 60, 3)))),
    Row("06-burst-of-3", (Gpu(cycle("1x5 0x23")),), dict.fromkeys([36 + 0.5 * n for n in range(0, 60, 3)], P)),
    Row("07-unallocated", (idle(pods=()),), never(), pods=()),
    Row(
        "08-gap",
        (Gpu("0x79 _x14 0x90", present="1x79 _x14 1x90"),),
        {39: P, 41: P, 43: P, 46: P, 46.5: P, 48: P, 52: P, 60: P},
    ),
    Row(
        "08-short-outage",
        (Gpu("0x79 stale _x3 0x100", present="1x79 stale _x3 1x100"),),
        {39: P, 41: P, 43: P, 50: P, 60: P},
    ),
    Row("09-gaps", (Gpu("0.9x99 " + GAPS),), never(40, 52, 56, 57.5, 60, 67, 71, 75)),
    Row(
        "10-shared",
        (Gpu(always(0.05), pods=("p", "q")),),
        never(),
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "11-mig",
        (
            Gpu(always(0.02), util=0, gi="1", index=0),
            Gpu(always(0.95), util=0, gi="2", index=0, pods=("q",)),
        ),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row("11-mig-video-of-the-gpu", (Gpu(always(0.02), encoder=80, gi="1"),), FIRES),
    Row("12-mig-unknown", (Gpu(util=0, gi="1"),), never()),
    Row("13-one-of-eight", (Gpu(always(0.95)), *[idle()] * 7), FIRES),
    Row("14-seven-of-eight", (*[Gpu(always(0.95))] * 7, idle()), never()),
    Row("15-pod-exemption", (idle(),), never(), pods=(Pod(exempt_from=ALERT),)),
    Row("15-pod-exemption-by-key", (idle(),), never(), pods=(Pod(exempt_from="low-utilization"),)),
    Row("15-exemption-from-another", (idle(),), FIRES, pods=(Pod(exempt_from="GPUWorkloadPending"),)),
    Row("16-namespace-exemption", (idle(),), never(), namespace_exempt_from="low-utilization"),
    Row("16-namespace-exemption-from-another", (idle(),), FIRES, namespace_exempt_from="GPUWorkloadPending"),
    Row(
        "17-override",
        (Gpu(always(0.1), pods=("q",)), Gpu(always(0.1))),
        FIRES,
        pods=(Pod(), Pod("q", override=0.05)),
    ),
    Row("17-override-upwards", (Gpu(always(0.4)),), FIRES, pods=(Pod(override=0.5),)),
    Row("17-override-of-serving", (idle(),), FIRES, pods=(Pod(override=0.5, workload_class="serving"),)),
    Row("18-encoder", (Gpu(always(0.02), encoder=80),), never()),
    Row("18-encoder-idle", (Gpu(always(0.02), encoder=1),), FIRES),
    Row(
        "19-classic-only",
        (Gpu(util=85, pods=("q",)), Gpu(util=3)),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "20-replaced",
        (idle(),),
        {45: P, 66: P, 70: NONE, 80: NONE, 84: NONE, 86.5: P},
        pods=(Pod(start="0x99 3000x90", uids=RENEWED),),
    ),
    Row("21-two-watchers", (idle(),), FIRES, pods=(Pod(watchers=2),)),
    Row("21-two-state-metrics", (idle(),), FIRES, pods=(Pod(watchers=0, state_metrics=2),)),
    Row("22-finished", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}),)),
    Row(
        "22-finishes",
        (idle(),),
        {38: P, 60: NONE, 75: NONE},
        pods=(Pod(phases={"Running": "1x79 stale", "Succeeded": "_x80 1x90"}),),
    ),
    Row("22-state-metrics-lags", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}, state_metrics=1),)),
    Row(
        "22-finished-without-watcher",
        (idle(),),
        never(),
        pods=(Pod(watchers=0, state_metrics=1, state_phase="Succeeded"),),
    ),
    Row("23-loads", (Gpu("0x39 0.8x140"),), never(20, 25, 30, 32, 36, 60)),
    Row("24-works-until-minute-50", (Gpu("0.9x99 0x80"),), {36: NONE, 60: NONE, 69: P}),
    Row("24-resumes-at-minute-50", (Gpu("0x99 0.9x80"),), {45: P, 54: P, 70: P, 76: NONE}),
    Row("24-low-for-less-than-5-minutes", (Gpu(cycle("1x9 0x21")),), never(*(36 + n for n in range(30)))),
    Row("24-lost-gpu", (idle(), Gpu()), never(), flavors=OWN),
    Row("25-serving", (idle(),), never(), pods=(Pod(workload_class="serving"),)),
    Row("25-interactive", (idle(),), never(), pods=(Pod(workload_class="interactive"),)),
    Row("26-unknown-owner-little", (Gpu(always(0.1)),), FIRES, pods=(Pod(watchers=0, state_metrics=1),)),
    Row("26-unknown-owner-idle", (Gpu(always(0.009)),), FIRES, pods=(Pod(watchers=0, state_metrics=1),)),
    Row("26-unknown-class-little", (Gpu(always(0.1)),), never(), pods=(Pod(workload_class=""),)),
    Row("26-unknown-class-idle", (Gpu(always(0.009)),), FIRES, pods=(Pod(workload_class=""),)),
    Row("27-no-engine-but-video", (Gpu(encoder=0),), never()),
    Row("28-sidecar", (idle(),), FIRES, pods=(Pod(containers=("main", "sidecar")),), flavors=OWN),
    Row(
        "29-two-exporters",
        (Gpu(always(0), second_flavor=FLAVORS[4]),),
        FIRES,
        flavors=OWN,
    ),
    Row(
        "29-two-exporters-disagree",
        (Gpu(always(0), pods=(), second_flavor=FLAVORS[4], second_pod="p"),),
        never(),
        flavors=OWN,
    ),
    Row(
        "29-unlisted-pod",
        (idle(unlisted_pods=1),),
        never(),
        flavors=OWN,
    ),
    Row(
        "29-two-watchers-disagree",
        (idle(),),
        FIRES,
        pods=(Pod(watchers=2, priorities=("", "high")),),
    ),
    Row("31-exposed-workload", (idle(),), FIRES, pods=(Pod(watchers=0, state_metrics=1, exposed_workload="nightly"),)),
    Row("30-never-started", (idle(),), never(), pods=(Pod(start=""),)),
)
"""Rows 01 to 23 are the matrix; the others are cases that it leaves open.

Row 10 with dcgm-exporter requires its virtual-GPU mode: without it, it exposes one of the pods that share a device.
"""
