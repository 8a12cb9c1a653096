"""Which workload a pod belongs to."""

import pytest

from exporter.cluster.kubernetes.wire import Owner
from exporter.cluster.kubernetes.workload import workload_of

CREATED = 1_796_000_000.0
MINUTE = int(CREATED) // 60


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        (None, {}, ("p", "pod")),
        (Owner("Node", "n1", controller=True), {}, ("p", "pod")),
        (Owner("Job", "train", controller=False), {}, ("p", "pod")),
        (Owner("Job", "train", controller=True), {}, ("train", "job")),
        (Owner("ReplicaSet", "llm-7f9c", controller=True), {"pod-template-hash": "7f9c"}, ("llm", "deployment")),
        (Owner("ReplicaSet", "llm-7f9c", controller=True), {}, ("llm-7f9c", "replicaset")),
        (Owner("ReplicaSet", "llm", controller=True), {"pod-template-hash": "7f9c"}, ("llm", "replicaset")),
        (Owner("StatefulSet", "db", controller=True), {}, ("db", "statefulset")),
        (Owner("DaemonSet", "ds", controller=True), {}, ("ds", "daemonset")),
        (Owner("PyTorchJob", "ft", controller=True), {}, ("ft", "pytorchjob")),
        (Owner("RayCluster", "ray", controller=True), {}, ("ray", "raycluster")),
        (Owner("Job", f"nightly-{MINUTE}", controller=True), {}, ("nightly", "cronjob")),
        (Owner("Job", f"nightly-{MINUTE - 60}", controller=True), {}, ("nightly", "cronjob")),
        (Owner("Job", f"nightly-{MINUTE + 60}", controller=True), {}, (f"nightly-{MINUTE + 60}", "job")),
        (Owner("Job", "nightly-20261130", controller=True), {}, ("nightly-20261130", "job")),
        (Owner("Job", "js-w-0", controller=True), {"jobset.sigs.k8s.io/jobset-name": "js"}, ("js", "jobset")),
        (
            Owner("Job", "tj-node-0", controller=True),
            {"jobset.sigs.k8s.io/jobset-name": "tj", "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
            ("tj", "trainjob"),
        ),
        (
            Owner("StatefulSet", "vllm-0", controller=True),
            {"leaderworkerset.sigs.k8s.io/name": "vllm"},
            ("vllm", "leaderworkerset"),
        ),
        (
            Owner("ReplicaSet", "m-pred-1", controller=True),
            {"serving.kserve.io/inferenceservice": "m", "pod-template-hash": "1"},
            ("m", "inferenceservice"),
        ),
        (Owner("StatefulSet", "nb", controller=True), {"notebook-name": "nb"}, ("nb", "notebook")),
        (Owner("", "", controller=True), {}, ("p", "pod")),
    ],
)
def test_a_pod_belongs_to(owner, labels, expected):
    assert workload_of("p", labels, [owner] if owner else None, CREATED) == expected


def test_the_controller_counts_among_several_owners():
    owners = [Owner("ConfigMap", "c", controller=None), Owner("Job", "j", controller=True)]
    assert workload_of("p", {}, owners, CREATED) == ("j", "job")
