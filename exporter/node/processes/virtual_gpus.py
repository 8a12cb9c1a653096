"""Adds what pods use of shared devices to two DCGM-named families, as dcgm-exporter does for its virtual GPUs. No I/O.

Beside the series of a shared device, used framebuffer and GPU utilization get one of each container that was given
replicas of it, with their numbers in the label `vgpu`. No other family has series of pods: nothing else is measured of
a process.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from exporter.metric import Family, Labels, LabelSchema, Metric, labels_of_pairs
from exporter.node.attribution.matching.attribute import Attribution
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.fields import field_ids
from exporter.node.devices.series.labels import LabelStyle, allocation_names
from exporter.node.processes.use import PodUse

LABEL = "vgpu"
SHARED = frozenset({"time-slicing", "mps"})
MIB, PERCENT = 1 << 20, 100


@lru_cache(maxsize=16)
def _schema(schema: LabelSchema) -> LabelSchema:
    return LabelSchema((*schema.names, LABEL), schema.optional | {LABEL})


def with_virtual_gpus(
    families: Iterable[Family],
    counters: Counters,
    attribution: Attribution,
    uses: Iterable[PodUse],
    labels: Sequence[Labels],
    style: LabelStyle,
) -> Iterator[Family]:
    """Yield the families of the counters file, those of framebuffer and utilization with the series of pods.

    `uses` are those of the devices that are exposed; `labels` are those of the devices.
    """
    fields = {row.name: row.field.id for row in counters.sample_rows}
    replicas = _replicas(attribution)
    own = [use for use in uses if _key(use) in replicas]
    for family in families:
        values = _values(fields.get(family.metric.name), own)
        if not values:
            yield family
            continue
        schema = _schema(family.metric.schema)
        renamed = Metric(family.metric.name, family.metric.kind, family.metric.help, schema)
        of_pods = [(_pod_labels(labels[use.device], use, replicas[_key(use)], schema, style), v) for use, v in values]
        yield Family(renamed, [*((_moved(each, schema), value) for each, value in family.samples), *of_pods])


def _key(use: PodUse) -> tuple[int, tuple[str, str, str]]:
    return use.device, use.container[:3]


def _replicas(attribution: Attribution) -> Mapping[tuple[int, tuple[str, str, str]], str]:
    """Return the numbers of the replicas of each shared device that each container was given."""
    found: dict[tuple[int, tuple[str, str, str]], set[str]] = {}
    for each in attribution.allocations:
        if each.sharing in SHARED:
            found.setdefault((each.device, each.container[:3]), set()).update(each.replica_ids)
    return {key: ",".join(sorted(ids)) for key, ids in found.items()}


def _values(field: int | None, uses: Iterable[PodUse]) -> list[tuple[PodUse, int]]:
    """Return the value of each use in the unit of the field: MiB or per cent, as the field of the device."""
    if field == field_ids.FB_USED:
        return [(use, use.memory // MIB) for use in uses if use.memory is not None]
    if field == field_ids.GPU_UTIL:
        return [(use, round(use.sm * PERCENT)) for use in uses if use.sm is not None]
    return []


@lru_cache(maxsize=4096)
def _moved(labels: Labels, schema: LabelSchema) -> Labels:
    return labels_of_pairs(schema, labels.pairs)


def _pod_labels(device: Labels, use: PodUse, replicas: str, schema: LabelSchema, style: LabelStyle) -> Labels:
    """The labels of the device, with those of the container in place of the empty ones."""
    container = dict(zip(allocation_names(style), use.container, strict=False))
    pairs = [(name, container.get(name, value)) for name, value in device.pairs]
    return labels_of_pairs(schema, (*pairs, (LABEL, replicas)))
