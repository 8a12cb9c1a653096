"""The DCGM fields that the NVML source reads, of GPUs, MIG devices, NVLinks and vGPUs; one GPU may lack some."""

from exporter.node.devices.fields import field_ids
from exporter.node.nvml.calls import gpm
from exporter.node.nvml.calls.calls import CALLS
from exporter.node.nvml.calls.field_values import FIELD_VALUES, NVLINK_RATES
from exporter.node.nvml.entities import links, vgpus

IDENTITY = frozenset({field_ids.NAME, field_ids.UUID, field_ids.PCI_BUS_ID, field_ids.XID, *field_ids.SYSTEM})
"""Read by discovery, and received as events."""


def read_fields() -> frozenset[int]:
    """Their ids."""
    of_calls = frozenset(field for call in CALLS for field in call.fields)
    of_parts = links.READ_FIELDS | vgpus.READ_FIELDS
    return IDENTITY | of_calls | frozenset(FIELD_VALUES) | frozenset(NVLINK_RATES) | gpm.FIELDS | of_parts
