"""Prints docs/metrics.md."""

import sys

from exporter.tools.reference import markdown

sys.stdout.write(markdown())
