"""Which workload a pod belongs to."""

import pytest

from exporter.api_objects.wire import OwnerReference
from exporter.api_objects.workload import workload_of

CREATED = 1_796_000_000.0
MINUTE = int(CREATED) // 60


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        (None, {}, ("p", "pod")),
        (OwnerReference("Node", "n1", controller=True), {}, ("p", "pod")),
        (OwnerReference("Job", "train", controller=False), {}, ("p", "pod")),
        (OwnerReference("Job", "train", controller=True), {}, ("train", "job")),
        (
            OwnerReference("ReplicaSet", "llm-7f9c", controller=True),
            {"pod-template-hash": "7f9c"},
            ("llm", "deployment"),
        ),
        (OwnerReference("ReplicaSet", "llm-7f9c", controller=True), {}, ("llm-7f9c", "replicaset")),
        (OwnerReference("ReplicaSet", "llm", controller=True), {"pod-template-hash": "7f9c"}, ("llm", "replicaset")),
        (OwnerReference("StatefulSet", "db", controller=True), {}, ("db", "statefulset")),
        (OwnerReference("DaemonSet", "ds", controller=True), {}, ("ds", "daemonset")),
        (OwnerReference("PyTorchJob", "ft", controller=True), {}, ("ft", "pytorchjob")),
        (OwnerReference("RayCluster", "ray", controller=True), {}, ("ray", "raycluster")),
        *[
            (
                OwnerReference(kind, "tune-x2k4p", controller=True),
                {"ray.io/originated-from-crd": crd, "ray.io/originated-from-cr-name": "tune"},
                expected,
            )
            for kind, crd, expected in (
                ("RayCluster", "RayJob", ("tune", "rayjob")),
                ("RayCluster", "RayService", ("tune", "rayservice")),
                ("Job", "RayJob", ("tune", "rayjob")),
                ("RayCluster", "RayCluster", ("tune-x2k4p", "raycluster")),
                ("StatefulSet", "RayJob", ("tune-x2k4p", "statefulset")),
            )
        ],
        (
            OwnerReference("RayCluster", "tune-x2k4p", controller=True),
            {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": ""},
            ("tune-x2k4p", "raycluster"),
        ),
        (OwnerReference("Job", f"nightly-{MINUTE}", controller=True), {}, ("nightly", "cronjob")),
        (OwnerReference("Job", f"nightly-{MINUTE - 60}", controller=True), {}, ("nightly", "cronjob")),
        (OwnerReference("Job", f"nightly-{MINUTE + 60}", controller=True), {}, (f"nightly-{MINUTE + 60}", "job")),
        (OwnerReference("Job", "nightly-20261130", controller=True), {}, ("nightly-20261130", "job")),
        (OwnerReference("Job", "js-w-0", controller=True), {"jobset.sigs.k8s.io/jobset-name": "js"}, ("js", "jobset")),
        (
            OwnerReference("Job", "tj-node-0", controller=True),
            {"jobset.sigs.k8s.io/jobset-name": "tj", "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
            ("tj", "trainjob"),
        ),
        (
            OwnerReference("StatefulSet", "vllm-0", controller=True),
            {"leaderworkerset.sigs.k8s.io/name": "vllm"},
            ("vllm", "leaderworkerset"),
        ),
        (
            OwnerReference("ReplicaSet", "m-pred-1", controller=True),
            {"serving.kserve.io/inferenceservice": "m", "pod-template-hash": "1"},
            ("m", "inferenceservice"),
        ),
        (OwnerReference("StatefulSet", "nb", controller=True), {"notebook-name": "nb"}, ("nb", "notebook")),
        (None, {"app": "jupyterhub", "component": "singleuser-server"}, ("p", "notebook")),
        (None, {"hub.jupyter.org/username": "ann", "component": "singleuser-server"}, ("p", "notebook")),
        (None, {"app": "jupyterhub", "component": "hub"}, ("p", "pod")),
        (None, {"kueue.x-k8s.io/pod-group-name": "pretrain"}, ("pretrain", "podgroup")),
        (None, {"kueue.x-k8s.io/pod-group-name": "Pre_Train"}, ("p", "pod")),
        (OwnerReference("Job", "j", controller=True), {"kueue.x-k8s.io/pod-group-name": "pretrain"}, ("j", "job")),
        (None, {"component": "singleuser-server"}, ("p", "pod")),
        (
            OwnerReference("Job", "j", controller=True),
            {"app": "jupyterhub", "component": "singleuser-server"},
            ("j", "job"),
        ),
        (OwnerReference("VirtualMachineInstance", "vm-1", controller=True), {}, ("vm-1", "virtualmachineinstance")),
        (OwnerReference("NodeSet", "slurm-gpu", controller=True), {}, ("slurm-gpu", "nodeset")),
        (OwnerReference("", "", controller=True), {}, ("p", "pod")),
        (OwnerReference("Job", "x'} or vector(1)", controller=True), {}, ("p", "pod")),
        (OwnerReference("Job", "a" * 254, controller=True), {}, ("p", "pod")),
        (OwnerReference("Job", "two\nlines", controller=True), {}, ("p", "pod")),
        (OwnerReference("<b>", "x", controller=True), {}, ("p", "pod")),
        (OwnerReference("K" * 64, "x", controller=True), {}, ("p", "pod")),
        (OwnerReference("PyTorchJob", "ft.v1-2", controller=True), {}, ("ft.v1-2", "pytorchjob")),
    ],
)
def test_the_workload_of_a_pod_is_found_from_its_controller_and_labels(owner, labels, expected):
    assert workload_of("p", labels, [owner] if owner else None, CREATED) == expected


def test_of_several_owners_the_controller_counts():
    owners = [OwnerReference("ConfigMap", "c", controller=None), OwnerReference("Job", "j", controller=True)]
    assert workload_of("p", {}, owners, CREATED) == ("j", "job")
