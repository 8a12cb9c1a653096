"""Checks of the kubelet, the device plugin and the allocations."""

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.doctor import kubernetes
from exporter.node.doctor.reasons import DoctorReason
from exporter.source import SourceError
from tests.exporter.node.doctor.nodes import GPU_UUID, PLUGINS, examination, finding, findings, gpu, read

K = "--kubernetes"


def allocation(device, resource="nvidia.com/gpu", pod="train-0"):
    return Allocation("team-a", pod, "main", resource, device)


def test_without_kubernetes_nothing_of_it_is_examined(node):
    for check in kubernetes.CHECKS:
        assert finding(kubernetes, check.name, examination(node)) == ("skipped", None, kubernetes.NOT_ASKED)


def test_the_kubelets_failure_has_its_own_reason_and_names_the_socket(node):
    error = SourceError(KubeletReason.NO_PERMISSION, "permission denied")
    status, reason, detail = finding(kubernetes, "kubelet", examination(node, K, kubelet=error))
    assert (status, reason) == ("failed", KubeletReason.NO_PERMISSION)
    assert detail == "/var/lib/kubelet/pod-resources/kubelet.sock: permission denied"
    assert finding(kubernetes, "allocations", examination(node, K, kubelet=error))[0] == "skipped"


def test_what_the_kubelet_lists_is_counted(node):
    listed = (allocation("a"), allocation("b"))
    assert finding(kubernetes, "kubelet", examination(node, K, kubelet=listed))[2] == (
        "it answers: 2 allocated devices of 1 pods"
    )


def plugin(node, *words):
    return finding(kubernetes, "device plugin", examination(node, K, *words))


def test_a_device_plugin_that_listens_is_fine(node):
    node.plugin("nvidia-mig-1g.10gb.sock")
    assert plugin(node) == ("ok", None, "nvidia-mig-1g.10gb.sock")


def test_the_socket_of_a_device_plugin_that_has_ended_is_told_from_none(node):
    node.plugin("nvidia-gpu.sock", listens=False)
    assert plugin(node) == ("failed", DoctorReason.DEVICE_PLUGIN_MUTE, "nvidia-gpu.sock")
    node.plugin("nvidiaGPU-1700000000.sock")
    assert plugin(node) == ("ok", None, "nvidiaGPU-1700000000.sock")


def test_the_plugins_that_are_there_instead_are_named(node):
    node.file(f"{PLUGINS}/kubelet.sock")
    node.plugin("rdma.sock")
    assert plugin(node) == ("failed", DoctorReason.DEVICE_PLUGIN_MISSING, f"{PLUGINS} has rdma.sock")
    assert plugin(node, "--nvidia-resource-names", "example.com/gpu")[0] == "ok"


def test_nvidias_dra_driver_stands_for_the_device_plugin(node):
    node.file(f"{PLUGINS}/kubelet.sock")
    node.file(f"/var/lib/kubelet/{kubernetes.DRA}")
    assert plugin(node)[0] == "ok"


def test_a_folder_that_is_not_mounted_is_not_examined(node):
    assert plugin(node)[0] == "skipped"


def test_allocations_that_match_no_device_are_named_by_reason(node):
    listed = (
        allocation(GPU_UUID),
        *(allocation(f"GPU-lost-{n}") for n in range(2)),
        *(allocation(f"MIG-{n}1111111-1111-1111-1111-111111111111", pod=f"mig-{n}") for n in range(5)),
        allocation("pool/first", "gpu.nvidia.com"),
    )
    examined = examination(node, K, kubelet=listed, attempts=(read(gpu()),))
    found = {each.reason: (str(each.status), each.detail) for each in findings(kubernetes, "allocations", examined)}
    assert found == {
        UnmatchedReason.UNRESOLVED_CLAIM: (
            "note",
            "gpu.nvidia.com: 1 id without a device, such as pool/first of team-a/train-0",
        ),
        UnmatchedReason.NO_SUCH_GPU: (
            "failed",
            "nvidia.com/gpu: 2 ids without a device, such as GPU-lost-0 of team-a/train-0",
        ),
        UnmatchedReason.NO_SUCH_INSTANCE: (
            "failed",
            "nvidia.com/gpu: 5 ids without a device, such as MIG-01111111-1111-1111-1111-111111111111 of team-a/mig-0",
        ),
    }


def test_ids_of_another_vendor_are_no_failure_and_resources_are_told_apart(node):
    listed = (allocation("0000:07:00.0", "amd.com/gpu"), allocation("x"), allocation("y", "nvidia.com/gpu.shared"))
    examined = examination(node, K, kubelet=listed, attempts=(read(gpu()),))
    assert [(str(each.status), each.reason, each.detail) for each in findings(kubernetes, "allocations", examined)] == [
        (
            "note",
            UnmatchedReason.OTHER_VENDOR,
            "amd.com/gpu: 1 id without a device, such as 0000:07:00.0 of team-a/train-0",
        ),
        ("failed", UnmatchedReason.UNKNOWN_FORM, "nvidia.com/gpu: 1 id without a device, such as x of team-a/train-0"),
        (
            "failed",
            UnmatchedReason.UNKNOWN_FORM,
            "nvidia.com/gpu.shared: 1 id without a device, such as y of team-a/train-0",
        ),
    ]


def test_allocations_that_all_match_are_counted(node):
    examined = examination(node, K, kubelet=(allocation(GPU_UUID),), attempts=(read(gpu()),))
    assert finding(kubernetes, "allocations", examined) == ("ok", None, "all 1 match a device")
    assert finding(kubernetes, "allocations", examination(node, K, kubelet=()))[0] == "skipped"


def test_what_cannot_be_known_because_a_scheduler_gives_out_parts_of_gpus_is_named(node):
    listed = (allocation(f"{GPU_UUID}-3"), allocation(GPU_UUID, pod="r")._replace(namespace="runai-reservation"))
    examined = examination(node, K, kubelet=listed, attempts=(read(gpu()),))
    assert [each.detail for each in findings(kubernetes, "allocations", examined)][1:] == [
        f"a scheduler chooses the GPUs, and none counts as unallocated: {GPU_UUID}-3 of team-a/train-0",
        f"shared, with users that the kubelet does not list: {GPU_UUID} of runai-reservation/r",
    ]


def test_a_kubelet_with_another_folder_is_examined_there(node):
    node.file("/var/lib/k0s/kubelet/device-plugins/rdma.sock")
    status, _, detail = plugin(node, "--kubelet-root", "/var/lib/k0s/kubelet/")
    assert (status, detail) == ("failed", "/var/lib/k0s/kubelet/device-plugins has rdma.sock")
