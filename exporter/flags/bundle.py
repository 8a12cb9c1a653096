"""The flags of the command `bundle`: what is another way in the files that it writes."""

from exporter.flags.flag import Flag
from exporter.flags.values import text_value

BUNDLE = (
    Flag(
        "cluster-label",
        text_value("NAME"),
        "label that tells clusters apart, in rules, dashboards and the chart's values; else cluster",
    ),
)
