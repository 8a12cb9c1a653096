"""Writes a status page as HTML: no script, nothing from elsewhere, one style sheet inside the page.

Every text passes through `shown`, because names, labels and annotations are set by whoever may make a pod.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Sequence

from exporter.status_page.content import Cell, StatusPage, StatusTable

LIGHT = {
    "back": "#ffffff",
    "text": "#1b1d20",
    "soft": "#565b62",
    "line": "#d5d9de",
    "good": "#0b5cad",
    "bad": "#a83800",
}
DARK = {"back": "#15181c", "text": "#e8eaed", "soft": "#aab1ba", "line": "#3a4048", "good": "#7cc0ff", "bad": "#ff9d5c"}
"""Blue and orange are told apart by nearly everybody, red and green are not."""
_WORD_END = re.compile(r"(?<=[\s_-])")
_LONGEST_WORD = 15
"""Characters of a word for which every column has room, also where there are nine."""
_MAX_TEXT = 300
"""Characters of one text. Kubernetes allows names of 253; annotations may be much longer."""


def _variables(colors: dict[str, str]) -> str:
    return ":root{" + "".join(f"--{name}:{value};" for name, value in colors.items()) + "}"


STYLE = (
    _variables(LIGHT)
    + f"@media(prefers-color-scheme:dark){{{_variables(DARK)}}}"
    + """
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:90rem;background:var(--back);color:var(--text);
font:1rem/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:0 0 .5rem}
h2{font-size:1.1rem;margin:2rem 0 .3rem}
p{margin:.3rem 0}
a{color:var(--good)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0}
dt,th,small,.about{color:var(--soft)}
dd{margin:0}
table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600;overflow-wrap:normal}
td{min-width:6.5rem;overflow-wrap:normal}
.long{overflow-wrap:anywhere}
small{display:block}
meter{display:block;width:100%;max-width:8rem;height:.7rem}
meter::-webkit-meter-optimum-value{background:var(--good)}
meter::-moz-meter-bar{background:var(--good)}
nav a{margin-right:1rem}
.good,.bad{overflow-wrap:normal}
.good{color:var(--good)}
.bad{color:var(--bad);font-weight:600}
.banner{border:2px solid var(--bad);padding:.5rem}
@media(max-width:64rem){
thead{display:none}
table,tbody,tr,td{display:block}
tr{border-bottom:2px solid var(--line);padding:.4rem 0}
td{display:grid;grid-template-columns:7rem 1fr;min-width:0;border:0;padding:.1rem 0}
td::before{content:attr(data-column);color:var(--soft)}
}
"""
)
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
"""The Content-Security-Policy of the page: a browser applies this style sheet, and loads and runs nothing."""


def page_html(title: str, page: StatusPage, links: Sequence[str], banner: str = "") -> bytes:
    """Write the page. `banner` is a message above all else, `links` are paths of this server."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{shown(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{shown(title)}</h1>",
        *([f'<p class="banner bad">{shown(banner)}</p>'] if banner else []),
        "<dl>",
        *(f"<dt>{shown(name)}</dt><dd>{_cell(value)}</dd>" for name, value in page.facts),
        "</dl>",
        *(line for each in page.tables for line in _table(each)),
        "<h2>More</h2>\n<nav>",
        *(f'<a href="{html.escape(link)}">{html.escape(link)}</a>' for link in links),
        "</nav>\n</body>\n</html>\n",
    ]
    return "\n".join(parts).encode()


def _table(table: StatusTable) -> Iterator[str]:
    yield f"<h2>{shown(table.title)}</h2>"
    if table.about:
        yield f'<p class="about">{shown(table.about)}</p>'
    if not table.rows:
        yield f"<p>{shown(table.empty)}</p>"
        return
    heads = "".join(f"<th>{shown(column)}</th>" for column in table.columns)
    yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        written = (f'<td data-column="{shown(column)}">{_wrapped(cell)}</td>' for column, cell in cells)
        yield "<tr>" + "\n".join(written) + "</tr>"
    yield "</tbody>\n</table>"
    if table.more:
        yield f"<p>and {table.more} more, which are in /metrics</p>"


def _wrapped(cell: Cell) -> str:
    """Write a cell of a table. Only one with a long word may break inside words; all break after underscores."""
    longest = max(len(word) for text in (*cell.lines, cell.note) for word in _WORD_END.split(text))
    return f'<div class="long">{_cell(cell)}</div>' if longest > _LONGEST_WORD else f"<div>{_cell(cell)}</div>"


def _cell(cell: Cell) -> str:
    lines = "<br>".join(map(_breakable, cell.lines))
    marked = f'<span class="{cell.mark}">{lines}</span>' if cell.mark != "none" else lines
    bar = "" if cell.ratio is None else f'<meter value="{min(max(cell.ratio, 0.0), 1.0):.3f}"></meter>'
    note = f"<small>{_breakable(cell.note)}</small>" if cell.note else ""
    return f"{marked}{bar}{note}"


def _breakable(text: str) -> str:
    return shown(text).replace("_", "_<wbr>")


def shown(text: str) -> str:
    """Escape a text for HTML. What is no visible character, such as a change of writing direction, is replaced."""
    cut = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
    return html.escape("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in cut))
