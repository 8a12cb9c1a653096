"""What a GPU-hour costs, of a price file or of the watcher's series. No I/O, no state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from exporter.cluster.prices.price import Price, valid_on
from exporter.commands.prometheus.answer import PrometheusSample

_Rates = Mapping[tuple[str, str], tuple[float, str]]
"""(price of a GPU-hour, currency) by (model, pool)."""


@dataclass(frozen=True, slots=True)
class DayPrices:
    """The prices of one day. Those for one capacity type are left out: which a node has is not known here."""

    rates: _Rates

    def of(self, model: str, pool: str) -> tuple[float, str] | None:
        """Price of a GPU-hour and its currency: that of the pool, else that of all pools; None without one."""
        return self.rates.get((model, pool)) or self.rates.get((model, ""))


def of_file(prices: Iterable[Price], at: float) -> DayPrices:
    """The prices of a file that are valid on the day (UTC) of a time."""
    found = valid_on(datetime.fromtimestamp(at, UTC).date(), prices)
    return DayPrices(
        {(each.model, each.pool): (each.per_hour, each.currency) for each in found if not each.capacity_type}
    )


def of_samples(samples: Iterable[PrometheusSample]) -> DayPrices:
    """The prices that a watcher exposed."""
    return DayPrices(
        {(each["model"], each["pool"]): (each.value, each["currency"]) for each in samples if not each["capacity_type"]}
    )
