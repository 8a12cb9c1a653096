"""What the status page of the node exporter says, from the last collection. No I/O."""

from collections.abc import Iterable, Mapping

from exporter import VERSION
from exporter.collection_loop import Collected
from exporter.exposition.exporter_metrics import ConfigState
from exporter.metric import AnyFamily, Metric, Sample, Value
from exporter.node.attribution.series.metrics import UNMATCHED
from exporter.node.device_rows import COLUMNS, device_facts, device_rows
from exporter.node.devices.series.metrics import DEVICES_EXPECTED, DEVICES_OBSERVED, UNSUPPORTED
from exporter.node.service_account.reasons import SOURCE as KUBERNETES
from exporter.node.source_reasons import reason_of, rejection_of, unmatched_of
from exporter.snapshot import Snapshot
from exporter.status_page.content import Cell, Mark, StatusPage, StatusTable, absent, table, text
from exporter.status_page.sources import explained, failed_page, in_order_of_need, sources_table
from exporter.time_text import utc

_ATTRIBUTION = "kubelet"
"""The source of allocations."""
_NOT_DEVICES = (_ATTRIBUTION, KUBERNETES)
"""The sources that are not of devices."""


def node_page(collected: Collected, node: str) -> StatusPage:
    """Fill the page; `node` is the node's name."""
    snapshot = collected.snapshot
    if snapshot is None:
        return failed_page(collected.number, (("Node", text(node)),))
    families = {each.metric.name: each for each in snapshot.families}
    configuration = _configuration(collected.config)
    tables = (
        *((configuration,) if configuration.rows else ()),
        *in_order_of_need(snapshot, sources_table(snapshot, reason_of), _devices(snapshot)),
        *((configuration,) if not configuration.rows else ()),
        _unsupported(families, known=_was_read(snapshot)),
        _unmatched(families, known=_was_read(snapshot, _ATTRIBUTION)),
    )
    return StatusPage((("State", _state(snapshot, families, configuration)), *_facts(snapshot, families, node)), tables)


def _state(snapshot: Snapshot, families: Mapping[str, AnyFamily], configuration: StatusTable) -> Cell:
    """What is wrong first of all, in one line."""
    if configuration.rows:
        return text("see the configuration errors: " + configuration.rows[0][0].lines[0], mark=Mark.BAD)
    for health in snapshot.health:
        if not health.up:
            reason = reason_of(health.source, health.reason)
            meaning = reason.meaning if reason is not None else health.reason
            return text(f"{health.source} is down: {meaning}", mark=Mark.BAD)
    observed, expected = _value(families, DEVICES_OBSERVED), _value(families, DEVICES_EXPECTED)
    if observed != expected:
        return text(f"{observed} of {expected} GPUs can be read", mark=Mark.BAD)
    if snapshot.problems:
        return text("everything is read, with the problems below", mark=Mark.BAD)
    return text("everything is read", mark=Mark.GOOD)


def _was_read(snapshot: Snapshot, source: str = "") -> bool:
    """Whether the source of the devices, or the one of this name, was read in this collection."""
    return any(
        each.up for each in snapshot.health if (each.source == source if source else each.source not in _NOT_DEVICES)
    )


def _facts(snapshot: Snapshot, families: Mapping[str, AnyFamily], node: str) -> tuple[tuple[str, Cell], ...]:
    build = snapshot.build
    simulated = build.get("source") == "simulated"
    source = (
        text(build["source"], note="nothing here is measured" if simulated else "") if build.get("source") else absent()
    )
    return (
        ("Node", text(node)),
        ("Collected", text(utc(snapshot.taken_at))),
        ("GPUs", _gpus(families)),
        ("Source", source),
        ("DCGM version", text(build["dcgm_version"]) if build.get("dcgm_version") else absent()),
        ("NVML version", text(build["nvml_version"]) if build.get("nvml_version") else absent()),
        ("gpugauge version", text(VERSION)),
    )


def _gpus(families: Mapping[str, AnyFamily]) -> Cell:
    observed, expected = _value(families, DEVICES_OBSERVED), _value(families, DEVICES_EXPECTED)
    if not expected:
        return absent("none is known")
    return text(f"{observed} of {expected} readable", mark=Mark.GOOD if observed == expected else Mark.BAD)


def _value(families: Mapping[str, AnyFamily], metric: Metric) -> Value | None:
    return next((value for _, value in _samples(families, metric)), None)


def _samples(families: Mapping[str, AnyFamily], metric: Metric) -> Iterable[Sample]:
    return families[metric.name].samples if metric.name in families else ()


def _devices(snapshot: Snapshot) -> StatusTable:
    attributed = any(each.source == _ATTRIBUTION for each in snapshot.health)
    rows = device_rows(device_facts(snapshot.families), attributed=attributed)
    return table("GPUs and MIG devices", COLUMNS, rows, "No GPU is known; the table of sources says why.")


def _configuration(state: ConfigState | None) -> StatusTable:
    """How many errors of each kind the configuration has; their texts have names of files and are in the log."""
    rows = []
    if state is not None and state.sha256 is None:
        rows.append((text("the counters file cannot be used, so no field is read", mark=Mark.BAD), text("1")))
    elif state is not None and not state.successful:
        rows.append(
            (text("the counters file was changed and cannot be used; the former one is", mark=Mark.BAD), text("1"))
        )
    if state is not None and state.rejected_rows:
        rows.append(
            (text("rows of the counters file that are left out", mark=Mark.BAD), text(str(state.rejected_rows)))
        )
    about = "The log has the texts, with file and line." if rows else ""
    return table("Configuration errors", ("Kind", "Number"), rows, "None.", about)


def _unsupported(families: Mapping[str, AnyFamily], *, known: bool) -> StatusTable:
    rows = []
    for labels, value in _samples(families, UNSUPPORTED):
        pairs = dict(labels.pairs)
        rows.append(
            (text(pairs["field"]), text(str(value)), *explained(pairs["reason"], rejection_of(pairs["reason"])))
        )
    columns = ("Field", "Devices", "Reason", "Meaning", "Remedy")
    return table("Fields without a value", columns, rows, _none(known=known))


def _unmatched(families: Mapping[str, AnyFamily], *, known: bool) -> StatusTable:
    rows = []
    for labels, value in _samples(families, UNMATCHED):
        pairs = dict(labels.pairs)
        found = explained(pairs["reason"], unmatched_of(pairs["reason"]))
        rows.append((text(pairs["resource"]), text(str(value)), *found))
    columns = ("Resource", "Ids", "Reason", "Meaning", "Remedy")
    return table("Allocated device ids that match no device of this node", columns, rows, _none(known=known))


def _none(*, known: bool) -> str:
    """What stands in place of a table without rows."""
    return "None." if known else "Not known: nothing was read."
