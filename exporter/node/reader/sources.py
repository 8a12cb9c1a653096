"""Opens a source of device readings by its name. Each module is imported only when its source is configured."""

from exporter.node.devices.device_source import DeviceSource, ReaderConfig
from exporter.node.reader.openers import open_dcgm, open_nvml


def open_source(config: ReaderConfig) -> DeviceSource:
    """Make the configured source. No native library is loaded before its first read."""
    match config.source:
        case "dcgm":
            from exporter.node.dcgm.host_engine.running_engines import engine_beside  # noqa: PLC0415 - a reader loads only what it reads

            return open_dcgm(config, engine_beside)
        case "nvml":
            return open_nvml(config)
        case "simulated":
            from exporter.node.simulation.source import SimulatedSource  # noqa: PLC0415 - a reader loads only what it reads

            return SimulatedSource(config)
        case "auto":
            from exporter.node.reader.auto import AutoSource  # noqa: PLC0415 - a reader loads only what it reads

            return AutoSource(config)
