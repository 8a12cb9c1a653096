"""What the status page of the watcher says, from the last collection. No I/O.

Only families of the snapshot are read, and of these only those that do not grow with the number of pods.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from exporter import VERSION
from exporter.cluster.capacity_rows import COLUMNS, capacity_rows
from exporter.cluster.kubernetes.watching.reasons import SyncReason, WatchReason
from exporter.cluster.leadership.reasons import LEASE_SOURCE, LeaseReason
from exporter.cluster.metrics import blocked_work, capacity, leadership, nodes, pending, pods, reflectors
from exporter.cluster.scheduling.nodes.node_selection import ANY_MODEL
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.collection_loop import Collected
from exporter.metric import AnyFamily, Metric, Sample
from exporter.reason import Reason, find_reason
from exporter.snapshot import Snapshot
from exporter.status_page.content import Cell, Mark, StatusPage, StatusTable, absent, table, table_of, text
from exporter.status_page.sources import explained, failed_page, in_order_of_need, sources_table
from exporter.time_text import age, utc

Families = Mapping[str, AnyFamily]
"""By name."""
_MAX_LINES = 8
"""How many resources and models one cell lists."""


def cluster_page(collected: Collected) -> StatusPage:
    """Fill the page."""
    snapshot = collected.snapshot
    if snapshot is None:
        return failed_page(collected.number, ())
    families = {each.metric.name: each for each in snapshot.families}
    sources = sources_table(snapshot, _reason_of)
    if _stands_by(families):
        return StatusPage(_facts(snapshot, families), (sources,))
    data = (
        _workloads(families, snapshot.taken_at),
        _reasons(families, snapshot.taken_at),
        _without_pods(families),
        _capacity(families),
    )
    tables = (
        *in_order_of_need(snapshot, sources, *data),
        _objects(families),
        _overrides(families),
    )
    return StatusPage(_facts(snapshot, families), tables)


def _reason_of(source: str, value: str) -> Reason | None:
    return find_reason(value, *((LeaseReason,) if source == LEASE_SOURCE else (WatchReason, SyncReason)))


def _stands_by(families: Families) -> bool:
    """Whether this is a replica that does not lead, and so exposes nothing of the cluster."""
    return any(not value for _, value in _samples(families, leadership.LEADER))


def _facts(snapshot: Snapshot, families: Families) -> tuple[tuple[str, Cell], ...]:
    up = all(each.up for each in snapshot.health if each.source != LEASE_SOURCE)
    state = text("current", mark=Mark.GOOD) if up else text("not current: see the sources", mark=Mark.BAD)
    return (
        ("Collected", text(utc(snapshot.taken_at))),
        ("API server", state),
        *_replica(families),
        ("Pending", _pending(families)),
        ("gpugauge", text(VERSION)),
    )


def _replica(families: Families) -> Iterator[tuple[str, Cell]]:
    """Whether this replica leads, where there are several."""
    if leadership.LEADER.name in families:
        yield "Replica", text("standby" if _stands_by(families) else "leader")


def _pending(families: Families) -> Cell:
    if _stands_by(families):
        return absent("the replica that leads shows it")
    if not _pods_known(families):
        return absent("the pods are not known")
    devices = sum(value for _, value in _samples(families, pending.DEVICES))
    return text(f"GPU pods that ask for {devices} devices" if devices else "none")


def _pods_known(families: Families) -> bool:
    return pending.UNTRACKED.name in families


def _samples(families: Families, metric: Metric) -> Iterable[Sample]:
    return families[metric.name].samples if metric.name in families else ()


def _labeled(families: Families, metric: Metric) -> Iterator[tuple[dict[str, str], float]]:
    return ((dict(labels.pairs), value) for labels, value in _samples(families, metric))


def _workloads(families: Families, now: float) -> StatusTable:
    """Workloads that are pending for a while, oldest first, with what their oldest pods wait for."""
    reasons: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for labels, _ in _labeled(families, pending.REASON):
        reasons[_workload(labels)].add(labels["reason"])
    since: dict[tuple[str, str, str], float] = {}
    resources: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for labels, value in _labeled(families, pending.WORKLOAD_SINCE):
        since[_workload(labels)] = value
        resources[_workload(labels)].append(labels["resource"])

    def row(each: tuple[str, str, str]) -> tuple[Cell, ...]:
        name = text(f"{each[0]}/{each[1]}", note=each[2])
        return text(age(now - since[each])), name, text(*resources[each]), *_why(sorted(reasons[each]))

    return table_of(
        "Pending GPU workloads, oldest first",
        ("Pending for", "Workload", "Resource", "Reason", "Meaning", "Remedy"),
        sorted(since, key=lambda each: (since[each], each)),
        row,
        "None." if _pods_known(families) else "The pods are not known; the table of sources says why.",
        "Those that could have been scheduled for more than a minute. The next table counts all pods.",
    )


def _workload(labels: Mapping[str, str]) -> tuple[str, str, str]:
    return labels["namespace"], labels["workload"], labels["workload_type"]


def _why(values: list[str]) -> tuple[Cell, Cell, Cell]:
    """One line for each reason of a workload's oldest pods."""
    found = [reason for value in values if (reason := find_reason(value, PendingReason)) is not None]
    if not found:
        return absent("its pods are new, or too many are pending"), absent(), absent()
    return text(*values), text(*(each.meaning for each in found)), text(*(each.remedy for each in found))


def _reasons(families: Families, now: float) -> StatusTable:
    """All pending pods by reason, over all namespaces. One that asks for two resources counts for both."""
    pods_of: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    devices_of: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for metric, sums in ((pending.PODS, pods_of), (pending.DEVICES, devices_of)):
        for labels, value in _labeled(families, metric):
            sums[labels["reason"]][labels["resource"], labels["model"]] += int(value)
    oldest: dict[str, float] = {}
    for labels, value in _labeled(families, pending.OLDEST):
        oldest[labels["reason"]] = min(value, oldest.get(labels["reason"], value))
    rows = [
        (
            text(reason),
            text(age(now - oldest[reason])) if reason in oldest else absent(),
            text(*_by_resource(pods_of[reason], devices_of[reason])),
            *explained(reason, find_reason(reason, PendingReason))[1:],
        )
        for reason in sorted(pods_of, key=lambda reason: (-max(pods_of[reason].values()), reason))
    ]
    columns = ("Reason", "Oldest", "Pods", "Meaning", "Remedy")
    return table("Pending GPU pods by reason", columns, rows, "None." if _pods_known(families) else "Not known.")


def _by_resource(pods: Counter[tuple[str, str]], devices: Counter[tuple[str, str]]) -> list[str]:
    lines = [
        f"{resource}{'' if model == ANY_MODEL else f', {model}'}: {_count(count, 'pod')}, "
        f"{_count(devices[resource, model], 'device')}"
        for (resource, model), count in sorted(pods.items(), key=lambda each: (-each[1], each[0]))
    ]
    more = len(lines) - _MAX_LINES
    return [*lines[:_MAX_LINES], f"and {more} more"] if more > 0 else lines


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def _without_pods(families: Families) -> StatusTable:
    devices = {_work(labels): value for labels, value in _labeled(families, blocked_work.DEVICES)}

    def row(each: tuple[dict[str, str], float]) -> tuple[Cell, ...]:
        labels, value = each
        count = devices.get(_work(labels))
        return (
            text(labels["namespace"]),
            text(labels["queue"]) if labels["queue"] else absent("no queue"),
            text(labels["resource"]),
            text(str(value)),
            absent() if count is None else text(str(count)),
            *explained(labels["reason"], find_reason(labels["reason"], PendingReason)),
        )

    columns = ("Namespace", "Queue", "Resource", "Workloads", "Devices", "Reason", "Meaning", "Remedy")
    work = list(_labeled(families, blocked_work.WORKLOADS))
    return table_of("GPU work that has no pods yet, or too few", columns, work, row, "None.")


def _work(labels: Mapping[str, str]) -> tuple[str, ...]:
    return labels["namespace"], labels["queue"], labels["resource"], labels["reason"]


def _capacity(families: Families) -> StatusTable:
    known = nodes.SCHEDULABLE.name in families
    empty = "No node offers GPUs." if known else "The nodes are not known; the table of sources says why."
    silent = sum(not value for _, value in _samples(families, capacity.REGISTERED))
    about = f"Nodes that have GPUs by their labels and offer none: {silent}." if silent else ""
    return table("GPUs by model and resource", COLUMNS, capacity_rows(families), empty, about)


def _objects(families: Families) -> StatusTable:
    """What the API server has confirmed, and optional objects that are not read."""
    rows = [
        (text(labels["object"]), text(f"confirmed {utc(value)}", mark=Mark.GOOD), *explained("", None))
        for labels, value in _labeled(families, reflectors.LAST_SYNC)
    ]
    rows += [
        (
            text(labels["object"]),
            text("not read"),
            *explained(labels["reason"], find_reason(labels["reason"], WatchReason)),
        )
        for labels, _ in _labeled(families, reflectors.OFF)
    ]
    return table("Objects of the API server", ("Object", "State", "Reason", "Meaning", "Remedy"), rows, "None.")


def _overrides(families: Families) -> StatusTable:
    rows = [
        (text(labels["key"], mark=Mark.BAD), text(str(value)))
        for labels, value in _labeled(families, pods.MALFORMED)
        if value
    ]
    columns = ("Annotation or label that is ignored", "Number")
    return table("Configuration errors", columns, rows, "None.", "The log has the names and the values.")
