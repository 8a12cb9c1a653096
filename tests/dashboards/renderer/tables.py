"""The rows of a table panel: its query results after Grafana's transformations merge, filter and organize.

A frame is the result of one query: a row for each series, with its labels, the name of the series (`__name__`) too.
"""

from tests.dashboards.renderer.answers import Series

Row = dict[str, str | float | None]
Frame = list[Row]


def rows_of(panel: dict, series: tuple[Series, ...]) -> tuple[list[str], list[Row]]:
    """The headings in order, and the rows in the order in which the panel sorts them."""
    frames = _frames(series, single=len(panel["targets"]) == 1)
    for each in panel.get("transformations", []):
        frames = _transformed(each["id"], each["options"], frames)
    rows = frames[0]
    for sort in reversed(panel["options"].get("sortBy", [])):
        rows = sorted(rows, key=lambda row: _sort_key(row.get(sort["displayName"])), reverse=sort.get("desc", False))
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def _sort_key(value) -> tuple[bool, float, str]:
    return (value is not None, value if isinstance(value, float) else 0.0, value if isinstance(value, str) else "")


def _frames(series: tuple[Series, ...], *, single: bool) -> list[Frame]:
    frames: dict[str, Frame] = {}
    for each in series:
        value = "Value" if single else f"Value #{each.ref}"
        frames.setdefault(each.ref, []).append({**each.labels, value: each.last})
    return list(frames.values())


def _transformed(kind: str, options: dict, frames: list[Frame]) -> list[Frame]:
    match kind:
        case "merge":
            return [_merged(frames)]
        case "filterFieldsByName":
            return [[_filtered(options, row) for row in frame] for frame in frames]
        case "organize":
            return [_organized(options, frame) for frame in frames]
    raise NotImplementedError(f"the test renderer does not know the transformation {kind}")


def _filtered(options: dict, row: Row) -> Row:
    left_out = options.get("exclude", {}).get("names", [])
    kept = options.get("include", {}).get("names", row)
    return {name: value for name, value in row.items() if name in kept and name not in left_out}


def _merged(frames: list[Frame]) -> Frame:
    """Rows of different queries become one where all fields agree that every query has, and no other differs."""
    common = sorted(set.intersection(*({name for row in frame for name in row} for frame in frames)))
    rows: dict[tuple, list[Row]] = {}
    for fields in (row for frame in frames for row in frame):
        alike = rows.setdefault(tuple(fields.get(name) for name in common), [])
        for row in alike:
            if all(row.get(name, value) == value for name, value in fields.items()):
                row.update(fields)
                break
        else:
            alike.append(dict(fields))
    return [row for alike in rows.values() for row in alike]


def _organized(options: dict, frame: Frame) -> Frame:
    order, titles = options.get("indexByName", {}), options.get("renameByName", {})
    names = {name for row in frame for name in row if not options.get("excludeByName", {}).get(name)}
    kept = sorted(names, key=lambda name: order.get(name, len(order)))
    return [{titles.get(name, name): row.get(name) for name in kept} for row in frame]
