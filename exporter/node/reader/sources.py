"""Opens a source of device readings by its name. Each module is imported only when its source is configured."""

from exporter.node.devices.device_source import DeviceSource, ReaderConfig


def open_source(config: ReaderConfig) -> DeviceSource:
    """Make the configured source. No native library is loaded before its first read."""
    match config.source:
        case "dcgm":
            from exporter.node.dcgm.source import DcgmSource  # noqa: PLC0415 - a reader loads only what it reads

            return DcgmSource(config)
        case "nvml":
            from exporter.node.nvml.source import NvmlSource  # noqa: PLC0415 - a reader loads only what it reads

            return NvmlSource(config)
        case "simulated":
            from exporter.node.simulation.source import SimulatedSource  # noqa: PLC0415 - a reader loads only what it reads

            return SimulatedSource(config)
        case "auto":
            from exporter.node.reader.auto import AutoSource  # noqa: PLC0415 - a reader loads only what it reads

            return AutoSource(config)
