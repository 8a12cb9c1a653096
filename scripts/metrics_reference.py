"""Prints docs/metrics.md."""

import sys

from exporter.commands.metrics import markdown

sys.stdout.write(markdown())
