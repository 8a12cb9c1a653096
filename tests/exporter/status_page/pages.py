"""A page as tests read it: its cells by row, parsed by the standard library's parser."""

import re
from html.parser import HTMLParser

from exporter import VERSION
from exporter.status_page.html import page_html

LINKS = ("/metrics", "/health")
HOSTILE = "<script>alert(1)</script>\"'>&amp;<img src=x onerror=alert(2)>\u202e\x00\n"
"""A name as nobody should be allowed to choose it."""
ALLOWED_TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "dl", "dt", "dd", "table", "thead", "tbody",
    "tr", "th", "td", "div", "span", "br", "wbr", "small", "meter", "nav", "a",
}  # fmt: skip
ALLOWED_ATTRIBUTES = {
    "lang", "charset", "name", "content", "class", "value", "href", "data-column",
}  # fmt: skip


class ReadPage(HTMLParser):
    """What a browser would make of the page: elements, attributes and texts."""

    def __init__(self, body):
        super().__init__()
        self.tags, self.attributes, self.texts, self.rows = set(), set(), [], []
        self._cell = None
        self._goes_on = False
        """Whether the next text is the rest of the last one, which may break there."""
        self.feed(body.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._goes_on = tag == "wbr"
        self.attributes.update(name for name, _ in attrs)
        if tag == "tr":
            self.rows.append({})
        if tag == "td":
            self._cell = dict(attrs)["data-column"]
            self.rows[-1][self._cell] = ""
        elif self._cell is not None and tag in {"br", "small"}:
            self.rows[-1][self._cell] += "\n"

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = None

    def handle_data(self, data):
        if self._goes_on:
            self.texts[-1] += data
        else:
            self.texts.append(data)
        self._goes_on = False
        if self._cell is not None:
            self.rows[-1][self._cell] += data


def written(page):
    return page_html("gpugauge", page, LINKS)


def recorded(page):
    """The page as golden files have it: without the version and the style sheet."""
    text = written(page).decode().replace(f"<dd>{VERSION}</dd>", "<dd>*</dd>")
    return re.sub(r"<style>.*?</style>", "<style>*</style>", text, flags=re.DOTALL)


def rows_of(page):
    """The rows of all tables, each by column."""
    return [row for row in ReadPage(written(page)).rows if row]


def check_harmless(body):
    """Fails when the page has an element or an attribute that our own code does not write."""
    found = ReadPage(body)
    assert found.tags <= ALLOWED_TAGS
    assert found.attributes <= ALLOWED_ATTRIBUTES
    assert not any("\u202e" in text or "\x00" in text for text in found.texts)
    return found
