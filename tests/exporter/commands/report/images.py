"""Writes the image of a report into docs/images: its page.

Usage: python -m tests.exporter.commands.report.images   (needs chromium on PATH)
"""

import tempfile
from pathlib import Path

from exporter.commands.report.page import as_html
from exporter.commands.report.sections import head, notes, tables
from scripts.screenshots import photograph
from tests.exporter.commands.report.recorded import recorded_report

PAGE = 1280, 1010
"""Width and height of the part of the page that is shown."""
TOP = 20


def main():
    """Draw the report of the fleet of the tests."""
    found = recorded_report()[0]
    shown = tables(found, "workload", TOP)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(as_html(found, head(found), shown, notes(found)), encoding="utf-8")
        photograph("report.png", f"file://{file}", *PAGE)


if __name__ == "__main__":
    main()
