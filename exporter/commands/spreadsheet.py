"""Text in CSV, which spreadsheets open: they run what looks like a formula."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def text_cell(text: str) -> str:
    """A text of others as a cell: one that a spreadsheet would take for a formula gets an apostrophe."""
    return f"'{text}" if text[:1] in _FORMULA else text
