"""Reads the peer-to-peer status of one GPU towards each other one through NVML."""

from collections.abc import Iterator, Mapping
from typing import Any

import pynvml

from exporter.node.devices.readings.readings import P2pStatus


def p2p_statuses(uuid: str, gpus: Mapping[str, Any]) -> Iterator[P2pStatus]:
    """Yield the status of this GPU towards each other one, handles by UUID; a pair that cannot be read is left out.

    As DCGM asks: over NVLink (NVML_P2P_CAPS_INDEX_NVLINK), not over PCIe.
    """
    for peer, handle in gpus.items():
        if peer != uuid:
            try:
                status = pynvml.nvmlDeviceGetP2PStatus(gpus[uuid], handle, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
            except pynvml.NVMLError:  # a lost GPU is found by the calls that concern it alone
                continue
            yield P2pStatus(uuid, peer, int(status))
