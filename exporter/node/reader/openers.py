"""Makes the sources that open GPUs, each so that this process ends when the driver is unbound from one.

Each module is imported only when it is needed: a reader process loads only what it reads.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from exporter.node.devices.fields.device_source import DeviceSource, ReaderConfig
from exporter.node.devices.readings.readings import XidReport

if TYPE_CHECKING:
    from exporter.node.nvml.events.driver_events import DriverEvents

Leave = Callable[[Sequence[XidReport]], None]
"""Ends this process at once, and hands over the XIDs that no reply has had."""


def open_dcgm(config: ReaderConfig, leave: Leave, beside: Callable[[], str] = str) -> DeviceSource:
    """Make the source that reads an engine. No native library is loaded before its first read.

    `beside` says which other engine seems to run here when one is embedded; empty for none.
    """
    from exporter.node.dcgm.source import DcgmSource  # noqa: PLC0415 - see above

    return DcgmSource(config, watch_driver=partial(_watch_driver, leave), beside=beside)


def open_nvml(config: ReaderConfig, leave: Leave) -> DeviceSource:
    """Make the source that reads NVML. No native library is loaded before its first read."""
    from exporter.node.nvml.source import NvmlSource  # noqa: PLC0415 - see above

    return NvmlSource(config, unbound=leave)


def _watch_driver(leave: Leave) -> "DriverEvents":
    """Watch the driver beside an embedded engine, which has initialized NVML for itself and keeps its XIDs."""
    from exporter.node.nvml.events.driver_events import DriverEvents  # noqa: PLC0415 - see above

    return DriverEvents(partial(leave, ()), own_session=True)
