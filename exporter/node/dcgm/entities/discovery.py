"""Discovery: asks an engine for the identity of its GPUs and instances, and describes them as devices.

In: an open connection and what the engine lists. Out: an `EngineInventory`.
"""

from exporter.node.dcgm.entities.inventory import DescribedGpus, DeviceList, EngineInventory
from exporter.node.dcgm.entities.topology import EngineTopology, hierarchy_rows
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.live_reader import LiveReader
from exporter.node.dcgm.native.status_scope import require_any
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.readings.readings import SampleValue

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

    A GPU that cannot describe itself is down, a MIG device that cannot is left out. `live` asks the driver, which takes
    a few dozen milliseconds. Raises SourceError.
    """
    values, rejected = live.each([(layout.ENTITY_GPU, gpu_id) for gpu_id in topology.readable], _GPU_FIELDS)
    require_any(tuple(values), tuple(rejected.values()))
    rows = hierarchy_rows(topology.hierarchy)
    of_instances, rejected_instances = live.each([row.entity for row in rows], _INSTANCE_FIELDS)
    rejected |= rejected_instances
    values |= of_instances | _values_of_unreadable(topology, live)
    readable = {values.get((layout.ENTITY_GPU, gpu_id, field_ids.UUID)) for gpu_id in topology.readable}
    listing = DeviceList(values, [row for row in rows if row.entity not in rejected], driver)
    for gpu_id, state in topology.gpus:
        architecture = connection.architecture(gpu_id)
        if state in layout.GPU_UNREADABLE or (layout.ENTITY_GPU, gpu_id) in rejected:
            listing.add_unreadable(gpu_id, architecture, known.unreadable(gpu_id, readable))
        else:
            listing.add_gpu(gpu_id, architecture)
    listing.add_missing(known.by_uuid)
    listing.add_problems(topology.problems)
    listing.add_rejected(rejected)
    return listing.inventory()


def _values_of_unreadable(topology: EngineTopology, live: LiveReader) -> dict[tuple[int, int, int], SampleValue]:
    """Read what GPUs in an unreadable state still have, in calls of their own, which may fail.

    A detached GPU has its name, UUID and bus id (4.5 and newer, source). A lost GPU has blanks with status OK, also
    for its UUID (4.6.0, measured).
    """
    unreadable = [(layout.ENTITY_GPU, gpu_id) for gpu_id, state in topology.gpus if state in layout.GPU_UNREADABLE]
    values, _ = live.each(unreadable, _GPU_FIELDS)
    return values
