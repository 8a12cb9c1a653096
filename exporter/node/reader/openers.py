"""Makes the sources that open GPUs, each so that this process ends when the driver is unbound from one.

Each module is imported only when it is needed: a reader process loads only what it reads.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from exporter.node.devices.device_source import DeviceSource, ReaderConfig
from exporter.node.reader.unbound import end_process

if TYPE_CHECKING:
    from exporter.node.nvml.driver_events import DriverEvents


def open_dcgm(config: ReaderConfig, beside: Callable[[], str] = str) -> DeviceSource:
    """Make the source that reads an engine. No native library is loaded before its first read.

    `beside` says which other engine seems to run here when one is embedded; empty for none.
    """
    from exporter.node.dcgm.source import DcgmSource  # noqa: PLC0415 - see above

    return DcgmSource(config, watch_driver=_watch_driver, beside=beside)


def open_nvml(config: ReaderConfig) -> DeviceSource:
    """Make the source that reads NVML. No native library is loaded before its first read."""
    from exporter.node.nvml.source import NvmlSource  # noqa: PLC0415 - see above

    return NvmlSource(config, unbound=end_process)


def _watch_driver() -> "DriverEvents":
    """Watch the driver beside an embedded engine, which has initialized NVML for itself."""
    from exporter.node.nvml.driver_events import DriverEvents  # noqa: PLC0415 - see above

    return DriverEvents(end_process, own_session=True)
