"""Formats PromQL. Rules are written as literal text with full metric names, so that one search finds every use."""

import promql_parser


def formatted(expression: str) -> str:
    """Return the expression as promql-parser formats it. Raises ValueError for text that is no PromQL."""
    text: str = promql_parser.parse(expression).prettify()
    return text
