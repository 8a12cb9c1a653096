"""Cases of GPUPodLowUtilization that rules got wrong once: each row is one way to be silent, or to fire, wrongly."""

from tests.alerts.fleet import Gpu, Pod, always
from tests.alerts.rows import FIRES, NONE, OWN, P, Row, idle, never

OUTAGE = "1x79 stale _x29 1x120"
"""The watcher is away from minute 40 to minute 55."""

THROUGH = {39.0: P, **{40.0 + n: P for n in range(0, 40, 2)}}
"""Firing all the time."""

KSM = {"watchers": 0, "state_metrics": 1}

FAULT_ROWS = (
    Row("2-8-gpus-one-without-reading", (*[idle()] * 7, Gpu()), FIRES, flavors=OWN),
    Row("2-8-gpus-two-without-reading", (*[idle()] * 6, Gpu(), Gpu()), never(), flavors=OWN),
    Row("2-one-of-8-lost-mid-way", (*[idle()] * 7, Gpu("0x79 stale", present=always(1))), THROUGH, flavors=OWN),
    Row(
        "2-one-of-8-busy-one-lost",
        (*[idle()] * 4, *[Gpu(always(0.9))] * 3, Gpu()),
        never(),
        flavors=OWN,
    ),
    Row("12-hole-of-7-minutes", (Gpu("0x79 stale _x13 0x120", present="1x79 stale _x13 1x120"),), THROUGH),
    Row("14-watcher-outage", (idle(),), THROUGH, pods=(Pod(watched=OUTAGE),)),
    Row(
        "14-watcher-outage-with-state-metrics",
        (Gpu(always(0.1)),),
        THROUGH,
        pods=(Pod(watched=OUTAGE, state_metrics=1),),
    ),
    Row(
        "14-watcher-outage-exempt",
        (idle(),),
        never(*range(40, 60, 2)),
        pods=(Pod(watched=OUTAGE, state_metrics=1, exempt_from="low-utilization"),),
    ),
    Row(
        "14-watcher-outage-serving",
        (idle(),),
        never(*range(40, 60, 2)),
        pods=(Pod(watched=OUTAGE, state_metrics=1, workload_class="serving"),),
    ),
    Row(
        "14-watcher-outage-override",
        (Gpu(always(0.1)),),
        never(*range(40, 60, 2)),
        pods=(Pod(watched=OUTAGE, state_metrics=1, override=0.05),),
    ),
    Row("26-one-minute-of-nan", (Gpu("0x69 NaN NaN 0x120"),), {34: NONE, **{36 + n: P for n in range(0, 40, 2)}}),
    Row("26-a-blank-value", (Gpu("0x69 9223372036854775794 9223372036854775794 0x120"),), {50: P, 60: P}, flavors=OWN),
    Row("27-clock-40-minutes-behind", (idle(),), {25: NONE, 34: NONE, 36: P}, pods=(Pod(start=always(-2400)),)),
    Row(
        "5-explicit-limit-of-serving", (Gpu(always(0.08)),), FIRES, pods=(Pod(override=0.1, workload_class="serving"),)
    ),
    Row(
        "5-limit-of-interactive", (Gpu(always(0.2)),), never(), pods=(Pod(override=0.1, workload_class="interactive"),)
    ),
    Row("9-owner-deployment", (idle(),), never(), pods=(Pod(**KSM, owner=("ReplicaSet", "web-7d4b9c6f5d")),)),
    Row("9-owner-statefulset", (idle(),), never(), pods=(Pod(**KSM, owner=("StatefulSet", "db")),)),
    Row("9-owner-job", (Gpu(always(0.1)),), FIRES, pods=(Pod(**KSM, owner=("Job", "train"), owned=("train", "job")),)),
    Row(
        "9-owner-cronjob",
        (Gpu(always(0.1)),),
        FIRES,
        pods=(Pod(**KSM, owner=("Job", "nightly-28912345"), owned=("nightly", "cronjob")),),
    ),
    Row("9-owner-none", (Gpu(always(0.1)),), FIRES, pods=(Pod(**KSM, owner=("", ""), owned=("p", "pod")),)),
    Row(
        "9-owner-none-of-old-versions",
        (Gpu(always(0.1)),),
        FIRES,
        pods=(Pod(**KSM, owner=("<none>", "<none>"), owned=("p", "pod")),),
    ),
    Row(
        "9-watcher-knows-better",
        (Gpu(always(0.1)),),
        FIRES,
        pods=(Pod(state_metrics=1, owner=("ReplicaSet", "web-7d4b9c6f5d")),),
    ),
)
"""Named after the number of the fault."""
