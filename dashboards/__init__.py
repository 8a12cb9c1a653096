"""The Grafana dashboards, as Python that writes deploy/generated/dashboards."""

from dashboards import fleet, node
from dashboards.style import Board

DASHBOARDS: tuple[Board, ...] = (fleet.BOARD, node.BOARD)
"""Every dashboard; their uids are an interface."""
