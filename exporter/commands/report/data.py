"""Writes a report for programs: JSON, CSV, and CSV with the column names of FOCUS (FinOps cost and usage, 1.0)."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from exporter.commands.report.advice import Advice
from exporter.commands.report.ledger import LedgerRow, closing_error
from exporter.commands.report.report import GpuReport
from exporter.commands.report.sections import notes
from exporter.commands.report.usage import UsageGrouping, UsageSum, key_columns
from exporter.commands.spreadsheet import text_cell
from exporter.time_text import utc

_COLUMNS = (
    "gpu_hours", "used_gpu_hours", "wasted_gpu_hours", "idle_gpu_hours", "not_observed_gpu_hours",
    "unused_memory_gib_hours", "pods", "cost", "wasted_cost", "currency",
)  # fmt: skip
_FREE = ("unallocated", "stranded", "unhealthy", "unobserved")


def as_csv(found: GpuReport, by: UsageGrouping) -> str:
    """One row for each group; the sums of what no pod had are in the fleet's rows of JSON and FOCUS."""
    rows = [
        (*key, *(_number(value) for value in _values(row, found.currency)), found.currency or "")
        for key, row in found.rows(by).items()
    ]
    return _csv((*key_columns(by), *_COLUMNS), rows)


def _values(row: UsageSum, currency: str | None) -> tuple[float | None, ...]:
    costs = (row.cost, row.wasted_cost) if currency else (None, None)
    hours = (row.hours, row.used, row.wasted, row.idle, row.hours - row.observed, row.unused_gib_hours)
    return (*hours, len(row.pods), *costs)


def _number(value: float | None) -> str:
    """A number without an exponent; none is below 0, but for errors of rounding."""
    return "" if value is None else f"{max(0.0, value):.6f}".rstrip("0").rstrip(".")


def _csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([map(text_cell, row) for row in rows])
    return text.getvalue()


_FOCUS = (
    "BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "BillingCurrency", "ChargePeriodStart",
    "ChargePeriodEnd", "ChargeCategory", "ChargeDescription", "ConsumedQuantity", "ConsumedUnit", "PricingQuantity",
    "PricingUnit", "ProviderName", "PublisherName", "InvoiceIssuerName", "ResourceId", "ResourceName", "ResourceType",
    "ServiceCategory", "ServiceName", "SubAccountId", "SubAccountName", "Tags",
)  # fmt: skip


def as_focus(found: GpuReport) -> str:
    """One row for each workload, and one for what no pod had of each model: together they are the whole fleet."""
    rows = [_focus_of_workload(found, key, row) for key, row in found.rows("workload").items()]
    rows += [row for key, each in found.ledger.rows.items() for row in _focus_of_rest(found, key, each)]
    return _csv(_FOCUS, rows)


def _focus_of_workload(found: GpuReport, key: tuple[str, ...], row: UsageSum) -> Sequence[str]:
    cluster, namespace, workload, kind = key
    tags = {"cluster": cluster, "namespace": namespace, "workload": workload, "workload_type": kind}
    tags["used_gpu_hours"] = _number(row.used)
    name = f"{namespace}/{workload}"
    return _focus_row(found, (row.cost, row.hours), (name, f"GPUs allocated to {name}", namespace), tags)


def _focus_of_rest(found: GpuReport, key: tuple[str, str], row: LedgerRow) -> Iterable[Sequence[str]]:
    cluster, model = key
    for state in _FREE:
        hours, cost = getattr(row.hours, state), getattr(row.cost, state)
        tags = {"cluster": cluster, "model": model, "state": state}
        if hours:
            yield _focus_row(found, (cost, hours), (f"{model} {state}", f"GPUs that were {state}", ""), tags)


def _focus_row(
    found: GpuReport, amounts: tuple[float, float], names: tuple[str, str, str], tags: dict[str, str]
) -> Sequence[str]:
    cost, hours = (_number(amount) for amount in amounts)
    cost = cost if found.currency else ""
    name, description, namespace = names
    cluster = tags["cluster"]
    period = (utc(found.parts[0].start), utc(found.parts[-1].end))
    return (
        *(cost,) * 4, found.currency or "", *period, "Usage", description, hours, "GPU-Hours", hours, "GPU-Hours",
        *("self-hosted",) * 3, f"{cluster}/{name}", name, "GPU", "Compute", "GPU", f"{cluster}/{namespace}", namespace,
        json.dumps(tags),
    )  # fmt: skip


def as_json(found: GpuReport, by: UsageGrouping) -> str:
    """Everything that the report has."""
    total = found.ledger.total
    document = {
        "from": utc(found.parts[0].start),
        "to": utc(found.parts[-1].end),
        "currency": found.currency,
        "closing_error": closing_error(total),
        "fleet": [
            {"cluster": cluster, "model": model, **_ledger_facts(row, found.currency)}
            for (cluster, model), row in found.ledger.rows.items()
        ],
        "total": _ledger_facts(total, found.currency),
        "by": by,
        "rows": [
            {**dict(zip(key_columns(by), key, strict=True)), **_usage_facts(row, found.currency)}
            for key, row in found.rows(by).items()
        ],
        "partly_idle_pods": [
            {**each.pod._asdict(), "devices": each.devices, "idle_devices": each.idle, "gpu_hours": each.gpu_hours}
            for each in found.partly_idle_pods()
        ],
        "pending": [
            {"cluster": cluster, "namespace": namespace, **asdict(each)}
            for (cluster, namespace), each in sorted(found.pending.items())
        ],
        "energy": [
            {"cluster": cluster, "kwh": each.kwh, "idle_share": each.idle_share}
            for cluster, each in sorted(found.energy.items())
        ],
        "advice": [_advice_facts(each) for each in found.advice()],
        "notes": notes(found),
    }
    return json.dumps(document, indent=2) + "\n"


def _ledger_facts(row: LedgerRow, currency: str | None) -> dict[str, object]:
    return {
        "gpu_hours": row.gpu_hours,
        "hours": {**asdict(row.hours), "allocated": row.hours.allocated},
        "cost": {**asdict(row.cost), "allocated": row.cost.allocated} if currency else None,
        "price_of_all": row.price_of_all if currency else None,
        "unpriced_gpu_hours": row.unpriced_hours,
    }


def _usage_facts(row: UsageSum, currency: str | None) -> dict[str, object]:
    return dict(zip(_COLUMNS, _values(row, currency), strict=False))


def _advice_facts(each: Advice) -> dict[str, object]:
    cluster, namespace, workload = each.need.name
    facts = {name: value for name, value in asdict(each.need).items() if name != "name"}
    advised = {"device": each.device, "other_model_by_memory": each.other_model, "sharing": each.sharing}
    return {"cluster": cluster, "namespace": namespace, "workload": workload, **facts, **advised, "why": each.reason}
