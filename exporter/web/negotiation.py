"""Content negotiation: text format or OpenMetrics, with gzip or without, from the headers of a request.

No I/O, no state.
"""

from collections.abc import Iterator

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def _quality(text: str) -> float:
    """Read a q-value; one that is not a number in 0..1 is 0, which means "not acceptable"."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0.0 <= value <= 1.0 else 0.0


def _choices(header: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Split an Accept or Accept-Encoding header into its elements: name, parameters without q, q."""
    for element in header.split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        quality = _quality(parameters.pop("q", "1"))
        if name:
            yield name.lower(), parameters, quality


def wants_openmetrics(accept: str) -> bool:
    """Whether the client names OpenMetrics 1.0 and does not accept the text format at all.

    Prometheus accepts both and prefers OpenMetrics, in which a counter with a DCGM name can only be `unknown`; in the
    text format it is a counter. A client that accepts neither gets the text format: a scrape never fails because of
    its headers.
    """
    openmetrics = 0.0
    text: dict[str, float] = {}
    for name, parameters, quality in _choices(accept):
        version = parameters.get("version")
        if name == "application/openmetrics-text" and version in {None, "1.0.0"}:
            openmetrics = max(openmetrics, quality)
        elif name in {"text/*", "*/*"} or (name == "text/plain" and version in {None, "0.0.4"}):
            text[name] = max(text.get(name, 0.0), quality)
    most_specific = next((text[name] for name in ("text/plain", "text/*", "*/*") if name in text), 0.0)
    return openmetrics > 0.0 and most_specific == 0.0


def wants_gzip(accept_encoding: str) -> bool:
    """Whether gzip is accepted, by name or through `*`, with a q above zero."""
    named = {name: quality for name, _, quality in _choices(accept_encoding)}
    return named.get("gzip", named.get("x-gzip", named.get("*", 0.0))) > 0.0
