"""`gpugauge metrics`: every metric that the two programs can expose, as the Markdown of docs/metrics.md."""

from collections.abc import Iterator
from typing import NamedTuple

from exporter.cluster.metrics.families import METRICS as WATCHER_METRICS
from exporter.exposition.exporter_metrics import CONTRACT, ConfigState, ExporterMetrics
from exporter.metric import Kind, LabelSchema, Metric
from exporter.node.attribution.jobs.hpc_jobs import METRICS as JOB_METRICS
from exporter.node.attribution.offer.offer import METRICS as OFFER_METRICS
from exporter.node.attribution.series.metrics import METRICS as ALLOCATION_METRICS
from exporter.node.attribution.series.normalized_metrics import METRICS as NORMALIZED_METRICS
from exporter.node.attribution.series.state_seconds import METRICS as STATE_METRICS
from exporter.node.audit.metrics import METRICS as AUDIT_METRICS
from exporter.node.counters_watch import load_counters
from exporter.node.devices.computed.computed_families import METRICS as COMPUTED_OWN_METRICS
from exporter.node.devices.computed.computed_families import computed_metric, extended_schema
from exporter.node.devices.counters.computed_metrics import COMPUTED
from exporter.node.devices.series.labels import LabelStyle, device_schema
from exporter.node.devices.series.metrics import METRICS as DEVICE_METRICS
from exporter.node.devices.series.metrics import dcgm_metric
from exporter.node.devices.series.vgpu_metrics import METRICS as VGPU_METRICS
from exporter.node.pods.metrics import METRICS as POD_METADATA_METRICS
from exporter.node.processes.metrics import METRICS as PROCESS_METRICS
from exporter.snapshot import Snapshot, SourceHealth, SourceProblem


class ReferenceSection(NamedTuple):
    """One section of the reference."""

    title: str
    text: str
    metrics: tuple[Metric, ...]


NORMALIZED_TEXT = """\
Ratios, bytes, watts, joules and degrees Celsius, whatever the source calls a field and in which unit it has it. The
fields that they need are read whatever the counters file lists; only profiling fields (of tensor, memory and
multiprocessor activity) are not, because they have a [cost](profiling.md) of their own. `--normalized-metrics=false`
leaves these metrics out."""

DCGM_TEXT = """\
The default counters file; a file of your own may name any [field](fields.md) of DCGM. Label rows of the file
(`DCGM_FI_DRIVER_VERSION`) appear as labels beside these. The labels `namespace`, `pod` and `container` are empty on an
unallocated or shared device and while the allocation is unknown. [Fields of NVLinks](fields.md#nvlinks), vGPUs,
NVSwitches and CPUs have labels of their own."""


def dcgm_metrics() -> tuple[Metric, ...]:
    """The DCGM-named metrics of the default counters file, with the labels that do not depend on options."""
    schema = device_schema(LabelStyle("node"), ())
    rows = load_counters(None).counters.sample_rows
    return tuple(dcgm_metric(row.name, row.type, row.help, schema) for row in rows)


COMPUTED_TEXT = """\
Computed here, as dcgm-exporter computes them, and only where the counters file names them; its help text is used. Their
series have the labels of the GPU too. Those that are gauges here can fall, whatever type the file gives."""


def computed_metrics() -> tuple[Metric, ...]:
    """The computed metrics with dcgm-exporter's names, with the labels that they add to those of the GPU."""
    nothing = LabelSchema()
    return tuple(
        computed_metric(name, computed.about, computed.kind, extended_schema(nothing, computed))
        for name, computed in COMPUTED.items()
    )


def exporter_metrics(constant_labels: tuple[str, ...]) -> tuple[Metric, ...]:
    """The exporter metrics of a program, taken from an exposition in which each of them has a sample."""
    return tuple(_exporter_metrics(constant_labels))


def _exporter_metrics(constant_labels: tuple[str, ...]) -> Iterator[Metric]:
    of_node = bool(constant_labels)
    config = (lambda: ConfigState("x", successful=True, at=0.0)) if of_node else None
    example = ExporterMetrics(dict.fromkeys(constant_labels, "x"), config=config)
    failed = SourceHealth("x", up=False, seconds=0.0, reason="x", message="x")
    build = dict.fromkeys(("dcgm_version", "nvml_version", "source"), "x") if of_node else {}
    example.observe(
        Snapshot(0.0, (), (failed,), (SourceProblem("x", "x", "x"),), rejected={("x", "x"): 1}, build=build)
    )
    for family in example.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield Metric(name, Kind(family.type), family.documentation, LabelSchema(tuple(family.samples[0].labels)))


def sections() -> tuple[ReferenceSection, ...]:
    """Every section of the reference."""
    return (
        ReferenceSection("Node exporter: DCGM names", DCGM_TEXT, dcgm_metrics()),
        ReferenceSection("Node exporter: computed DCGM names", COMPUTED_TEXT, computed_metrics()),
        ReferenceSection(
            "Node exporter: devices and allocations",
            "A series that is absent means that its value is not known.",
            (
                *DEVICE_METRICS,
                *COMPUTED_OWN_METRICS,
                *ALLOCATION_METRICS,
                *OFFER_METRICS,
                *POD_METADATA_METRICS,
                *JOB_METRICS,
                *STATE_METRICS,
                *PROCESS_METRICS,
                *VGPU_METRICS,
                *AUDIT_METRICS,
            ),
        ),
        ReferenceSection("Node exporter: normalized values", NORMALIZED_TEXT, NORMALIZED_METRICS),
        ReferenceSection(
            "Node exporter: exporter metrics",
            "Written by the Prometheus client library, beside its own `process_…` metrics.",
            exporter_metrics(("node",)),
        ),
        ReferenceSection(
            "Cluster watcher", "Facts about the cluster: only what speaks of one node has `node`.", WATCHER_METRICS
        ),
        ReferenceSection(
            "Cluster watcher: exporter metrics", "The same names as on the node exporter.", exporter_metrics(())
        ),
    )


def markdown() -> str:
    """Write the reference as Markdown."""
    parts = [
        "# Metrics",
        (
            "Generated by `make generate`; do not edit. Names, labels and meanings listed here are an interface: "
            "every change of them is in the changelog, and "
            f'`gpugauge_build_info{{contract="{CONTRACT}"}}` names their version.'
        ),
    ]
    for title, text, metrics in sections():
        parts += [f"## {title}", text, _table(metrics)]
    return "\n\n".join(parts) + "\n"


def _table(metrics: tuple[Metric, ...]) -> str:
    """Write one table. Labels that all of its metrics share are listed above it once."""
    shared = len({m.schema.names for m in metrics}) == 1
    head = ("metric", "type", "meaning") if shared else ("metric", "type", "labels", "meaning")
    rows = [(f"`{m.name}`", str(m.kind), *(() if shared else (_labels(m),)), m.help) for m in metrics]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows))
    return f"Labels: {_labels(metrics[0])}.\n\n{table}" if shared else table


def _labels(metric: Metric) -> str:
    return " ".join(f"`{label}`" for label in metric.schema.names) or "none"
