"""The flags of the command `report`: which time, what is added up, and the form."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, COUNT, FILE, TIME, choice

REPORT_FORMS = (
    Flag("focus", BOOLEAN, "write CSV with the column names of FOCUS, one row for each workload and each kind of rest"),
    Flag("html", BOOLEAN, "write one HTML page with charts, which can be printed and needs no other file"),
)
REPORT = (
    Flag("from", TIME, "begin of the time: 2026-11, 2026-11-30 or 2026-11-30T08:00:00Z; else as --days says"),
    Flag("to", TIME, "end of the time, which does not belong to it; else now"),
    Flag("days", COUNT, "how many days before the end the time begins, where --from is not given", default="7"),
    Flag(
        "by",
        choice("cluster", "namespace", "workload", "team", "cost_center", "workload_class", "model"),
        "what GPU-hours are added up for",
        default="workload",
    ),
    Flag("top", COUNT, "rows of each table", default="20"),
    Flag(
        "prices",
        FILE,
        "YAML file with prices, as the watcher reads it; else what the watcher exposed as gpugauge_price_per_hour",
        variable="GPUGAUGE_PRICES",
    ),
    Flag(
        "resume",
        FILE,
        "file in which answers are kept: after an error the same command goes on where it was",
    ),
)
