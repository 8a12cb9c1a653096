"""Parses Kubernetes quantities, such as `8`, `"500m"`, `512Gi` or `1e3`, to numbers. No I/O, no state."""

import re
from decimal import Decimal, InvalidOperation

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([KMGTPE]i)|([numkMGTPE]))?", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX_LENGTH = 64
_MAX_DEVICES = 1_000_000_000


def amount(value: str | float) -> Decimal:
    """Parse a quantity; the result is in the resource's own unit (devices, cores, bytes).

    Raises ValueError for anything that the API server would not accept as a quantity.
    """
    text = str(value)
    found = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise ValueError(f"{text[:_MAX_LENGTH]!r} is not a Kubernetes quantity")
    digits, exponent, binary, decimal = found.groups()
    try:
        number = Decimal(digits + (exponent or ""))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a Kubernetes quantity") from error
    return number * 2 ** _BINARY.get(binary, 0) if binary else number.scaleb(_DECIMAL.get(decimal, 0))


def devices(value: str | float) -> int:
    """Parse a number of devices. Raises ValueError unless it is a whole number from 0 to a thousand million."""
    number = amount(value)
    if not 0 <= number <= _MAX_DEVICES or number != number.to_integral_value():
        raise ValueError(f"{value!r} is not a number of devices")
    return int(number)
