"""The price of a GPU from a day on, and which prices are valid on a day. No I/O, no state."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU of this model costs per hour."""

    model: str
    """Spelled as the label `model`."""
    pool: str
    """The node pool that it is for; empty for all."""
    capacity_type: str
    """How the node is bought, such as `spot`; empty for any."""
    currency: str
    """Three letters, as ISO 4217 has them."""
    per_hour: float
    valid_from: date
    """The first day, in UTC."""

    @property
    def subject(self) -> tuple[str, str, str]:
        """What has one price at a time."""
        return self.model, self.pool, self.capacity_type


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of a file that was read."""

    prices: tuple[Price, ...] = ()
    problems: tuple[str, ...] = ()
    """One message for each row that is left out, with file, line and value."""


@dataclass(frozen=True, slots=True)
class PricesInUse:
    """The last price list that could be read, and whether the last attempt to read one succeeded."""

    list: PriceList
    successful: bool


def valid_on(day: date, prices: Iterable[Price]) -> list[Price]:
    """The prices that are valid on this day (UTC): of each subject the last one that has begun."""
    found: dict[tuple[str, str, str], Price] = {}
    for each in sorted(prices, key=lambda price: price.valid_from):
        if each.valid_from <= day:
            found[each.subject] = each
    return [found[subject] for subject in sorted(found)]
