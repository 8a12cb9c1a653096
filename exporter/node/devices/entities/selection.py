"""Parses which entities of a kind are read, in the notation of dcgm-exporter. No I/O, no state.

`f` is all of them; `g` the whole ones (NVSwitches, CPUs), `i` their parts (NVLinks, cores); both can have ids behind a
colon, with ranges, and be joined by `+`: `g:0,2-3+i:0-17`.
"""

import re

import msgspec

HIGHEST_ID = 1023
"""The largest number that an entity has in DCGM: that of the last core."""
_ITEM = re.compile(r"([gi])(?::([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*))?")

Ids = tuple[int, ...] | None
"""Numbers in ascending order; empty means every one, None means none at all."""


class SelectionError(ValueError):
    """A text is no selection. The message names the value that is wrong."""


class Selection(msgspec.Struct, frozen=True, array_like=True):
    """Which wholes and which parts are read: parts of the selected wholes, or of all where no whole is selected."""

    wholes: Ids = ()
    parts: Ids = ()

    def has_whole(self, number: int) -> bool:
        """Whether the whole of this number is read itself."""
        return _contains(self.wholes, number)

    def has_part(self, number: int, whole: int) -> bool:
        """Whether the part of this number is read, of the whole of that number."""
        return _contains(self.parts, number) and (self.wholes is None or _contains(self.wholes, whole))


def parse_selection(text: str) -> Selection:
    """Parse a selection. Raises SelectionError."""
    if text == "f":
        return Selection()
    if "f" in text.split("+"):
        raise SelectionError(f"'f' is everything and stands alone, unlike in {text!r}")
    found: dict[str, tuple[int, ...]] = {}
    for item in text.split("+"):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise SelectionError(f"{item!r} is not f, g, i, g:IDS or i:IDS, with IDS such as 0,2-5")
        letter, ids = match.groups()
        if letter in found:
            raise SelectionError(f"{letter!r} is there twice in {text!r}")
        found[letter] = _numbers(ids) if ids else ()
    return Selection(found.get("g"), found.get("i"))


def _numbers(ids: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for each in ids.split(","):
        first, _, last = each.partition("-")
        low, high = int(first), int(last or first)
        if low > high:
            raise SelectionError(f"{each} ends before it begins")
        if high > HIGHEST_ID:
            raise SelectionError(f"{high} is more than {HIGHEST_ID}")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def _contains(ids: Ids, number: int) -> bool:
    return ids is not None and (not ids or number in ids)
