"""The type `Link`: one NVLink of a GPU, which has fields of its own.

A position in `Readings.links` identifies a link within one collection.
"""

import msgspec


class Link(msgspec.Struct, frozen=True, array_like=True):
    """One NVLink of a GPU."""

    gpu: int
    """Position of its GPU in the inventory."""
    number: int
    """As the driver counts the links of a GPU, from 0; `L0` in the names of fields."""
