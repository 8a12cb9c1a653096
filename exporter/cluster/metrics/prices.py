"""Metrics of what GPUs cost, from the price file of the operator."""

from datetime import UTC, datetime

from exporter.cluster.prices.price import valid_on
from exporter.cluster.view import ClusterView
from exporter.metric import Family, Kind, metric

PRICE = metric(
    "gpugauge_price_per_hour",
    Kind.GAUGE,
    "What a GPU costs per hour today (UTC), by --prices; an empty pool or capacity type stands for any.",
    "model",
    "pool",
    "capacity_type",
    "currency",
)
REJECTED = metric(
    "gpugauge_prices_rejected_rows",
    Kind.GAUGE,
    "Rows of the price list in use that are left out, because they cannot be used.",
)
SUCCESSFUL = metric(
    "gpugauge_prices_last_reload_successful",
    Kind.GAUGE,
    "Whether the last attempt to read the price list succeeded.",
)
METRICS = (PRICE, REJECTED, SUCCESSFUL)


def price_families(view: ClusterView) -> list[Family]:
    """The families; none without a price list."""
    if view.prices is None:
        return []
    today = datetime.fromtimestamp(view.now, UTC).date()
    found = valid_on(today, view.prices.list.prices)
    return [
        Family(PRICE, [PRICE.ordered(each.per_hour, *each.subject, each.currency) for each in found]),
        Family(REJECTED, [REJECTED.sample(len(view.prices.list.problems))]),
        Family(SUCCESSFUL, [SUCCESSFUL.sample(int(view.prices.successful))]),
    ]
