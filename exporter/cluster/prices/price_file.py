"""Reads the rows of a price file. No I/O, no state.

    - model: NVIDIA-H100-80GB-HBM3
      pool: training          # optional: all pools
      capacity_type: spot     # optional: any
      currency: EUR
      per_hour: 2.35
      valid_from: 2027-01-01

The list may also stand under the key `prices`. A mistake in one row costs that row.
"""

import re
from datetime import date
from pathlib import Path

from exporter.cluster.prices.price import Price, PriceList
from exporter.config import ConfigFileError
from exporter.config_node import ConfigNode, parse
from exporter.gpu_names import canonical_model

_KEYS = ("model", "pool", "capacity_type", "currency", "per_hour", "valid_from")
_REQUIRED = ("model", "currency", "per_hour", "valid_from")
_MAX_TEXT = 128
"""Characters of a label value; the names of models and pools are shorter."""
_SHOWN = 80
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_AMOUNT = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def price_list(content: bytes, path: Path) -> PriceList:
    """Read the file's content. Raises ConfigFileError where it is no list of rows at all."""
    try:
        root = parse(content.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        raise ConfigFileError(path, None, "is not UTF-8 text") from error
    rows = root if root.is_list() else root.sections("prices").get("prices")
    prices: dict[tuple[object, ...], tuple[Price, int]] = {}
    problems = []
    for item in () if rows is None else rows.items():
        try:
            _add(item, prices)
        except ConfigFileError as error:
            problems.append(str(error))
    return PriceList(tuple(price for price, _ in prices.values()), tuple(problems))


def _add(item: ConfigNode, prices: dict[tuple[object, ...], tuple[Price, int]]) -> None:
    """Add the price of a row. Raises ConfigFileError, also where there is one for the same and the same day."""
    price = _price(item)
    key = (*price.subject, price.valid_from)
    if key in prices:
        words = " ".join(filter(None, (*price.subject, price.valid_from.isoformat())))
        raise item.error(f"{_shown(words)} has a price in line {prices[key][1]} already")
    prices[key] = (price, item.line)


def _price(item: ConfigNode) -> Price:
    entries = item.sections(*_KEYS)
    missing = [key for key in _REQUIRED if key not in entries or entries[key].empty]
    if missing:
        raise item.error(f"{' and '.join(missing)} missing{_of_model(entries)}")
    return Price(
        canonical_model(_text(entries["model"])),
        _text(entries.get("pool")),
        _text(entries.get("capacity_type")),
        _matching(entries["currency"], _CURRENCY, "three capital letters"),
        float(_matching(entries["per_hour"], _AMOUNT, "an amount such as 2.35")),
        _day(entries["valid_from"]),
    )


def _of_model(entries: dict[str, ConfigNode]) -> str:
    model = entries.get("model")
    return "" if model is None or model.empty else f" of {_shown(model.text())}"


def _text(entry: ConfigNode | None) -> str:
    """The value; empty where there is none. Raises ConfigFileError unless it can be a label value."""
    if entry is None or entry.empty:
        return ""
    text = entry.text().strip()
    if len(text) > _MAX_TEXT or not text.isprintable():
        raise entry.error(f"{_shown(text)} is no text of up to {_MAX_TEXT} characters that can be printed")
    return text


def _matching(entry: ConfigNode, pattern: re.Pattern[str], what: str) -> str:
    text = entry.text().strip()
    if not pattern.fullmatch(text):
        raise entry.error(f"{_shown(text)} is not {what}")
    return text


def _day(entry: ConfigNode) -> date:
    text = _matching(entry, _DAY, "a day such as 2027-01-31")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise entry.error(f"{_shown(text)} is not a day such as 2027-01-31") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
