"""The flags of the command `compare`: what is looked up in a response, instead of another response."""

from exporter.flags.flag import Flag
from exporter.flags.values import FILES

COMPARE = (
    Flag(
        "uses",
        FILES,
        "rules, dashboards, autoscalers and adapters (YAML, JSON or any text), instead of OLD: what in them would lose "
        "data; more files may follow before NEW",
    ),
)
