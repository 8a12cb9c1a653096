"""What collectors of `prometheus_client` give, as text of both formats.

The library's own writers collect once for each format and format every sample twice. Here each happens once and the
bytes are the same, for gauges, counters and untyped metrics: all that our programs keep with that library.
"""

from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from exporter.metric import escape

_TEXT_KINDS = {"gauge": "gauge", "counter": "counter", "unknown": "untyped"}
_END = "# EOF\n"


def client_page(registry: CollectorRegistry) -> tuple[bytes, bytes]:
    """Text format and OpenMetrics. Raises KeyError for a metric of any other type."""
    text: list[str] = []
    openmetrics: list[str] = []
    for metric in registry.collect():
        text_head, openmetrics_head = _heads(metric.name, metric.type, metric.documentation)
        lines = "".join(map(_line, metric.samples))
        text += (text_head, lines)
        openmetrics += (openmetrics_head, lines)
    openmetrics.append(_END)
    return "".join(text).encode(), "".join(openmetrics).encode()


@lru_cache(maxsize=256)
def _heads(name: str, kind: str, documentation: str) -> tuple[str, str]:
    total = f"{name}_total" if kind == "counter" else name
    help_ = documentation.replace("\\", "\\\\").replace("\n", "\\n")
    quoted = help_.replace('"', '\\"')
    return (
        f"# HELP {total} {help_}\n# TYPE {total} {_TEXT_KINDS[kind]}\n",
        f"# HELP {name} {quoted}\n# TYPE {name} {kind}\n",
    )


def _line(sample: Sample) -> str:
    value = floatToGoString(sample.value)  # type: ignore[no-untyped-call] # the library is half typed
    return f"{_series(sample.name, tuple(sample.labels.items()))} {value}\n"


@lru_cache(maxsize=1024)
def _series(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    pairs = ",".join([f'{label}="{escape(value)}"' for label, value in sorted(labels)])
    return f"{name}{{{pairs}}}" if pairs else name
