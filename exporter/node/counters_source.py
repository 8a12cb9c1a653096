"""Chooses where the counters of a node exporter are from."""

from collections.abc import Callable
from functools import partial

from exporter.node.config import NodeConfig
from exporter.node.counters_watch import CountersSource, CountersWatch, FixedCounters


def counters_source(config: NodeConfig, clock: Callable[[], float]) -> CountersSource:
    """Where the counters are from: a ConfigMap, the configuration file itself, or a counters file."""
    if config.config_map is not None:
        # An HTTP client takes memory that only these nodes need.
        from exporter.node.config_map import KEY, ConfigMapCounters  # noqa: PLC0415 - see above
        from exporter.node.service_account.request import config_map  # noqa: PLC0415 - likewise

        fetch = partial(config_map, config.service_account, config.config_map, KEY)
        named = config.counters_file
        fallback = CountersWatch(named, config.usual_counters_file, clock) if named is not None else None
        return ConfigMapCounters(config.config_map, fetch, fallback, clock)
    if config.fields is not None:
        return FixedCounters(config.fields)
    return CountersWatch(config.counters_file, config.usual_counters_file, clock)


def counters_name(config: NodeConfig) -> str:
    """What messages call it. Looks whether there is a file at the usual path."""
    if config.config_map is not None:
        return str(config.config_map)
    if config.fields is not None:
        return f"configuration file {config.fields.file}"
    if config.counters_file is None and not config.usual_counters_file.exists():
        return "the built-in list"
    return f"counters file {config.counters_file or config.usual_counters_file}"
