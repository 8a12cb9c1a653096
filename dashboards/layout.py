"""Where panels stand: a 24-column grid filled row by row, and ids that stay when a neighbour is added."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

COLUMNS = 24


@dataclass(frozen=True, slots=True)
class Box:
    """A place on the grid, in grid units (one unit of height is about 38 pixels)."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class Sized:
    """A panel and the room it asks for."""

    panel: Any
    w: int
    h: int


def sized(w: int, h: int, *panels: Any) -> tuple[Sized, ...]:
    """Panels of one size."""
    return tuple(Sized(panel, w, h) for panel in panels)


@dataclass(frozen=True, slots=True)
class Row:
    """A titled band of panels. A collapsed row asks nothing of Prometheus until it is opened."""

    title: str
    panels: tuple[Sized, ...]
    collapsed: bool = False


def flow(sizes: Iterable[tuple[int, int]], top: int) -> list[Box]:
    """Boxes from left to right, starting at height `top`; a line is as high as its highest box.

    Raises ValueError for a box that is wider than the grid or has no area.
    """
    boxes: list[Box] = []
    x, y, line = 0, top, 0
    for w, h in sizes:
        if not (0 < w <= COLUMNS and h > 0):
            raise ValueError(f"a panel of {w} by {h} does not fit on a grid of {COLUMNS} columns")
        if x + w > COLUMNS:
            x, y, line = 0, y + line, 0
        boxes.append(Box(x, y, w, h))
        x, line = x + w, max(line, h)
    return boxes


def below(boxes: Iterable[Box], otherwise: int) -> int:
    """The first free height under the boxes."""
    return max((box.y + box.h for box in boxes), default=otherwise)


def panel_id(title: str) -> int:
    """A number for a panel that depends on its title alone: links to a panel outlive changes around it."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1
