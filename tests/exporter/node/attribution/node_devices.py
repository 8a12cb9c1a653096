"""Devices of a node, and what the kubelet lists of them, for the tests of attribution."""

from exporter.node.attribution.allocation import Allocation, ClaimName
from exporter.node.devices.entities.device import Device

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
UUID = "GPU-6f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"


def gpu(uuid, index, *, mig=False):
    return Device(uuid, index, f"00000000:{index:02X}:00.0", index, "NVIDIA H100", mig_enabled=mig)


def instance(uuid, index, gi, ci=-1, mig=(), profile="1g.10gb"):
    return Device(
        uuid, index, f"00000000:{index:02X}:00.0", index, "NVIDIA H100", gi, ci, profile, mig, mig_enabled=True
    )


U0, U1 = gpu(UUID, 0), gpu("GPU-1", 1)
M = gpu("GPU-m", 2, mig=True)
M7, M8 = instance("GPU-m", 2, 7, mig=("MIG-aaaa",)), instance("GPU-m", 2, 8, mig=("MIG-GPU-m/8/0",))
M1 = instance("GPU-m", 2, 1, mig=("MIG-c0", "MIG-c1"))
M1C0, M1C1 = instance("GPU-m", 2, 1, 0, ("MIG-c0",)), instance("GPU-m", 2, 1, 1, ("MIG-c1",))


def allocated(pod, *ids, container="main", resource=GPU, namespace="team"):
    return tuple(Allocation(namespace, pod, container, resource, device_id) for device_id in ids)


def claimed(pod, device, claim="", share="", *, container="main", namespace="team", pool="node-1"):
    """What the kubelet lists of a device of a ResourceClaim, by default of one that the pod alone has."""
    name = ClaimName(namespace, claim or f"{pod}-gpu", share)
    return (Allocation(namespace, pod, container, "gpu.nvidia.com", f"{pool}/{device}", claim=name),)


def state_of(device, attribution):
    return attribution.states[attribution.inventory.index(device)]


def allocations_of(device, attribution):
    position = attribution.inventory.index(device)
    return {
        (each.container.pod, each.container.name, each.sharing, each.replicas)
        for each in attribution.allocations
        if each.device == position
    }
