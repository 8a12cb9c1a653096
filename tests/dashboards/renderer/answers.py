"""The results of a panel's queries, from a real Prometheus, as the series and frames that a panel draws."""

import math
import re
from dataclasses import dataclass, field

from tests.dashboards.prometheus import query


@dataclass(frozen=True)
class TimeRange:
    """The times that are shown, in seconds since the epoch, and the distance of two values."""

    start: float
    end: float
    step: float
    rate: float
    """Length of `$__rate_interval`."""


@dataclass(frozen=True)
class Series:
    """One result of a query: its legend, and the values with their times."""

    ref: str
    labels: dict[str, str]
    name: str
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float | None:
        return self.points[-1][1] if self.points else None


@dataclass(frozen=True)
class Answer:
    """What the queries of a panel gave; `error` is what Prometheus says of the first that failed."""

    series: tuple[Series, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Source:
    """A Prometheus, the times to show, and the values of variables: of one without a value, everything."""

    base: str
    times: TimeRange
    choices: dict[str, str] = field(default_factory=dict)

    def expression(self, text: str) -> str:
        """The expression as Grafana sends it."""
        seconds = round(self.times.end - self.times.start)
        step, rate = round(self.times.step), round(self.times.rate)
        windows = (
            ("range_s", f"{seconds}"),
            ("range", f"{seconds}s"),
            ("rate_interval", f"{rate}s"),
            ("interval_ms", f"{step * 1000}"),
            ("interval", f"{step}s"),
        )
        for name, value in windows:
            text = text.replace(f"$__{name}", value)
        # `$1` is a group of label_replace, `$$` a dollar sign, and neither is a variable.
        form = r"(?<!\$)\$(?:([a-z]\w*)|\{([a-z]\w*)(?::\w+)?\})"
        return re.sub(form, lambda found: self._chosen(found[1] or found[2]), text)

    def _chosen(self, name: str) -> str:
        return self.choices.get(name, ".*")

    def answer(self, panel: dict) -> Answer:
        """Run the queries of a panel."""
        found: list[Series] = []
        for target in panel.get("targets", []):
            try:
                found += self._run(target)
            except AssertionError as error:
                return Answer(error=str(error))
        return Answer(tuple(found))

    def _run(self, target: dict) -> list[Series]:
        expression = self.expression(target["expr"])
        if target["instant"]:
            result = query(self.base, "query", query=expression, time=str(self.times.end))
            pairs = [(each["metric"], [each["value"]]) for each in result]
        else:
            start, end, step = (str(each) for each in (self.times.start, self.times.end, self.times.step))
            result = query(self.base, "query_range", query=expression, start=start, end=end, step=step)
            pairs = [(each["metric"], each["values"]) for each in result]
        return [_series(target, metric, values) for metric, values in pairs]


def _series(target: dict, metric: dict[str, str], values: list) -> Series:
    points = tuple((float(at), float(value)) for at, value in values)
    known = tuple(point for point in points if not math.isnan(point[1]))
    return Series(target["refId"], metric, _legend(target.get("legendFormat", ""), metric), known)


def _legend(form: str, metric: dict[str, str]) -> str:
    if form and form != "__auto":
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: metric.get(found[1], ""), form).strip()
    labels = ", ".join(f'{name}="{value}"' for name, value in sorted(metric.items()) if name != "__name__")
    name = metric.get("__name__", "")
    return f"{name}{{{labels}}}" if labels else name or "Value"
