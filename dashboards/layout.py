"""The positions of panels on a grid of 24 columns, and panel ids that do not change when other panels are added."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

COLUMNS = 24


@dataclass(frozen=True, slots=True)
class GridBox:
    """Position and size of a panel, in grid units (one unit of height is about 38 pixels)."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class SizedPanel:
    """A panel with its width and height, in grid units."""

    panel: Any
    w: int
    h: int


def sized(w: int, h: int, *panels: Any) -> tuple[SizedPanel, ...]:
    """Give several panels the same size."""
    return tuple(SizedPanel(panel, w, h) for panel in panels)


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A row of panels with a title. The panels of a collapsed row run no queries until it is opened."""

    title: str
    panels: tuple[SizedPanel, ...]
    collapsed: bool = False


def flow(sizes: Iterable[tuple[int, int]], top: int) -> list[GridBox]:
    """Place boxes from left to right, starting at height `top`; each line of boxes is as high as its highest box.

    Raises ValueError for a box that is wider than the grid or has no area.
    """
    boxes: list[GridBox] = []
    x, y, line = 0, top, 0
    for w, h in sizes:
        if not (0 < w <= COLUMNS and h > 0):
            raise ValueError(f"a panel of {w} by {h} does not fit on a grid of {COLUMNS} columns")
        if x + w > COLUMNS:
            x, y, line = 0, y + line, 0
        boxes.append(GridBox(x, y, w, h))
        x, line = x + w, max(line, h)
    return boxes


def below(boxes: Iterable[GridBox], otherwise: int) -> int:
    """The first free height below the boxes; `otherwise` where there is none."""
    return max((box.y + box.h for box in boxes), default=otherwise)


def panel_id(title: str) -> int:
    """The id of a panel, from its title alone, so that links to it stay valid when other panels change."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1
