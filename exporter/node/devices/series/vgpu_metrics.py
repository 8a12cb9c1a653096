"""Makes our own series of vGPUs: how much each uses of its GPU. DCGM has that as a structure alone. No I/O."""

from exporter.metric import Family, Kind, metric
from exporter.node.devices.readings.readings import Readings

VGPU_UTILIZATION = metric(
    "gpugauge_vgpu_utilization_ratio",
    Kind.GAUGE,
    "Share of the time in which an engine of the GPU worked for the vGPU: sm, memory, encoder or decoder.",
    "UUID",
    "vgpu",
    "vgpu_uuid",
    "engine",
    "node",
    optional=("vgpu_uuid",),
)
METRICS = (VGPU_UTILIZATION,)
PERCENT = 100


def vgpu_families(readings: Readings, node: str) -> tuple[Family, ...]:
    """The families of vGPUs; none where the source reads no utilization of them. What cannot be true is left out."""
    samples = []
    for each in readings.vgpu_utilization:
        vgpu = readings.vgpus[each.vgpu]
        uuid = readings.inventory[vgpu.gpu].uuid
        shares = {"sm": each.sm, "memory": each.memory, "encoder": each.encoder, "decoder": each.decoder}
        samples += [
            VGPU_UTILIZATION.sample(
                percent / PERCENT, UUID=uuid, vgpu=str(vgpu.number), vgpu_uuid=vgpu.uuid, engine=engine, node=node
            )
            for engine, percent in shares.items()
            if 0 <= percent <= PERCENT
        ]
    return (Family(VGPU_UTILIZATION, samples),) if samples else ()
