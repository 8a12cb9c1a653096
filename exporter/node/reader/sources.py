"""Opens a source of device readings by its name. Each module is imported only when its source is configured."""

import msgspec

from exporter.node.devices.fields.device_source import DeviceSource, ReaderConfig
from exporter.node.reader.openers import Leave, open_dcgm, open_nvml


def open_source(config: ReaderConfig, leave: Leave) -> DeviceSource:
    """Make the configured source. No native library is loaded before its first read."""
    source = _configured(config, leave)
    if not config.processes or config.source not in {"auto", "dcgm"}:  # the others list the processes themselves
        return source
    from exporter.node.reader.with_processes import WithProcesses  # noqa: PLC0415 - a reader loads only what it reads

    beside = open_nvml(msgspec.structs.replace(config, source="nvml", fields=()), leave)
    return WithProcesses(source, beside, config.interval)


def _configured(config: ReaderConfig, leave: Leave) -> DeviceSource:
    match config.source:
        case "dcgm":
            from exporter.node.dcgm.host_engine.running_engines import engine_beside  # noqa: PLC0415 - a reader loads only what it reads

            return open_dcgm(config, leave, engine_beside)
        case "nvml":
            return open_nvml(config, leave)
        case "simulated":
            from exporter.node.simulation.source import SimulatedSource  # noqa: PLC0415 - a reader loads only what it reads

            return SimulatedSource(config)
        case "auto":
            from exporter.node.reader.auto import AutoSource, openers_of  # noqa: PLC0415 - a reader loads only what it reads

            return AutoSource(config, openers_of(leave))
