"""Discovery: asks an engine for the identity of its GPUs and instances, and describes them as devices.

In: an open connection and what the engine lists. Out: an `EngineInventory`.
"""

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.inventory import DescribedGpus, DeviceList, EngineInventory
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.live_reader import LiveReader
from exporter.node.dcgm.reasons import DcgmReason
from exporter.node.dcgm.topology import EngineTopology, hierarchy_rows
from exporter.node.devices import field_ids
from exporter.node.devices.device_source import WantedField
from exporter.node.devices.readings import SampleValue

_GPU_FIELDS = (
    WantedField(field_ids.NAME, "string", "gpu", "basic"),
    WantedField(field_ids.NVML_INDEX, "int", "gpu", "basic"),
    WantedField(field_ids.SERIAL, "string", "gpu", "basic"),
    WantedField(field_ids.UUID, "string", "gpu", "basic"),
    WantedField(field_ids.MINOR_NUMBER, "int", "gpu", "basic"),
    WantedField(field_ids.PCI_BUS_ID, "string", "gpu", "basic"),
    WantedField(field_ids.MIG_MODE, "int", "gpu", "basic"),
)
# The name of a GPU instance or compute instance is its profile, such as `1g.10gb`; it has a UUID, `MIG-…`, only where
# there is a compute instance (4.6.0, source).
_INSTANCE_FIELDS = (
    WantedField(field_ids.NAME, "string", "instance", "basic"),
    WantedField(field_ids.UUID, "string", "instance", "basic"),
)


def discover(
    connection: EngineConnection, topology: EngineTopology, known: DescribedGpus, driver: str, live: LiveReader
) -> EngineInventory:
    """Describe every device of the topology. Known GPUs that are missing now are `down`.

    `live` asks the driver, which takes a few dozen milliseconds. Raises SourceError.
    """
    rows = hierarchy_rows(topology.hierarchy)
    values = live([(layout.ENTITY_GPU, gpu_id) for gpu_id in topology.readable], _GPU_FIELDS)
    values |= live([row.entity for row in rows], _INSTANCE_FIELDS)
    for gpu_id, state in topology.gpus:
        if state in layout.GPU_UNREADABLE:
            values |= _values_of_unreadable(live, gpu_id)
    listing = DeviceList(values, rows, driver)
    for gpu_id, state in topology.gpus:
        if state in layout.GPU_UNREADABLE:
            listing.add_unreadable(gpu_id, connection.architecture(gpu_id), known.by_id.get(gpu_id))
        else:
            listing.add_gpu(gpu_id, connection.architecture(gpu_id))
    listing.add_missing(known.by_uuid)
    if topology.problem:
        message = f"MIG devices cannot be listed: {topology.problem}"
        listing.problems.append((DcgmReason.HIERARCHY_UNREADABLE, message))
    return listing.inventory()


def _values_of_unreadable(live: LiveReader, gpu_id: int) -> dict[tuple[int, int, int], SampleValue]:
    """Read what a GPU in an unreadable state still has, in a call of its own: this call may fail.

    A detached GPU has its name, UUID and bus id (4.5 and newer, source). A lost GPU has blanks with status OK, also
    for its UUID (4.6.0, measured).
    """
    try:
        return live([(layout.ENTITY_GPU, gpu_id)], _GPU_FIELDS)
    except StatusError as error:
        if error.reason in (DcgmReason.CONNECTION_LOST, DcgmReason.TIMEOUT):
            raise
        return {}
