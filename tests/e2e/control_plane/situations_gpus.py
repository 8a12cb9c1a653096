"""Situations that the GPUs of nodes decide: too few, in pieces, too many asked for, not offered, unknown."""

from simulators.objects import cordoned
from tests.e2e.control_plane.situation import (
    GPU,
    PRODUCT,
    cpu,
    h100,
    holding,
    label_in,
    needs_node,
    offering,
    pod,
    situation,
)

MIG, LARGE_MIG = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
SHARED = "nvidia.com/gpu.shared"
MIXED = {"nvidia.com/mig.strategy": "mixed"}
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def and_container(made, gpus, *, before=False, **fields):
    """The pod with one more container, or with one that runs before, as a sidecar where its fields say so."""
    more = {**pod("x", gpus)["spec"]["containers"][0], "name": "more", **fields}
    made["spec"].setdefault("initContainers" if before else "containers", []).append(more)
    return made


SITUATIONS = (
    situation("all-taken", "insufficient_gpu", h100("n1"), h100("n2"), holding("h1", "n1"), holding("h2", "n2"), pod()),
    situation("equal-priority", "insufficient_gpu", h100("n1"), holding("h1", "n1", 4), holding("h2", "n1", 4), pod()),
    situation(
        "selected-pool-full",
        "insufficient_gpu",
        h100("n1", labels={"pool": "a"}),
        h100("n2", labels={"pool": "b"}),
        holding("h1", "n1"),
        pod(nodeSelector={"pool": "a"}),
    ),
    situation(
        "right-product-full",
        "insufficient_gpu",
        h100("n1"),
        h100("n2", labels={"nvidia.com/gpu.product": "NVIDIA-L4"}),
        holding("h1", "n1"),
        pod(nodeSelector={"nvidia.com/gpu.product": PRODUCT}),
    ),
    situation(
        "mig-taken",
        "insufficient_gpu",
        h100("n1", 1, labels=MIXED, resources={MIG: 7}),
        holding("h", "n1", 0, asks={MIG: 7}),
        pod("p", 0, asks={MIG: 1}),
    ),
    situation(
        "shared-taken",
        "insufficient_gpu",
        h100("n1", 0, labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"}, resources={SHARED: 16}),
        holding("h", "n1", 0, asks={SHARED: 16}),
        pod("p", 0, asks={SHARED: 1}),
    ),
    situation(
        "in-pieces",
        {"p": "fragmentation", "q": "fragmentation"},
        h100("n1"),
        h100("n2"),
        h100("n3"),
        holding("h1", "n1", 4),
        holding("h2", "n2", 5),
        holding("h3", "n3", 3),
        pod("p", 8),
        pod("q", 6),
    ),
    situation(
        "nine-of-eight", {"p": "unsatisfiable_size", "q": "unsatisfiable_size"}, h100("n1"), pod("p", 9), pod("q", 16)
    ),
    situation(
        "too-large-for-its-pool",
        "unsatisfiable_size",
        h100("n1", 4, labels={"pool": "small"}),
        h100("n2", 8, labels={"pool": "large"}),
        pod("p", 8, affinity=needs_node(label_in("pool", "small"))),
    ),
    situation(
        "eight-of-seven-mig",
        "unsatisfiable_size",
        h100("n1", 1, labels=MIXED, resources={MIG: 7}),
        pod("p", 0, asks={MIG: 8}),
    ),
    situation("mistyped", "unknown_resource", h100("n1"), pod("p", 0, asks={"nvidia.com/gpus": 1})),
    situation("renamed", "unknown_resource", h100("n1"), cpu("n2"), pod("p", 0, asks={"nvidia.com/gpu-h100": 1})),
    situation(
        "node-by-name",
        {"full": "insufficient_gpu", "gone": "node_selector_or_affinity", "large": "unsatisfiable_size"},
        h100("n1"),
        h100("n2"),
        holding("h", "n1"),
        pod("full", nodeSelector={HOSTNAME: "n1"}),
        pod("gone", nodeSelector={HOSTNAME: "n9"}),
        pod("large", 9, nodeSelector={HOSTNAME: "n2"}),
    ),
    situation(
        "several-containers",
        {"sum": "unsatisfiable_size", "first": "unsatisfiable_size", "beside": "fragmentation"},
        h100("n1"),
        h100("n2"),
        holding("h1", "n1", 4),
        holding("h2", "n2", 4),
        and_container(pod("sum", 5), 5),
        and_container(pod("first", 1), 9, before=True),
        and_container(pod("beside", 3), 3, before=True, restartPolicy="Always"),
    ),
    situation(
        "larger-nodes-closed",
        {"p": "unsatisfiable_size", "q": "insufficient_gpu"},
        h100("n1", 4),
        cordoned(h100("n2", 4)),
        holding("h", "n1", 4),
        pod("p", 8),
        pod("q", 4),
    ),
    situation("no-gpu-node", "unknown_resource", cpu("n1"), cpu("n2"), pod()),
    situation("mig-profile-missing", "unknown_resource", h100("n1"), pod("p", 0, asks={LARGE_MIG: 1})),
    situation("no-plugin", "gpu_unavailable", h100("n1", 0), cpu("n2"), pod()),
    situation("unhealthy", "gpu_unavailable", offering(h100("n1"), {GPU: 0}), pod()),
    situation(
        "unhealthy-selected",
        "gpu_unavailable",
        offering(h100("n1", labels={"pool": "a"}), {GPU: 0}),
        h100("n2", labels={"pool": "b"}),
        pod(nodeSelector={"pool": "a"}),
    ),
    situation(
        "wrong-product",
        {"p": "node_selector_or_affinity", "q": "node_selector_or_affinity"},
        h100("n1"),
        cpu("n2"),
        pod("p", nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H200"}),
        pod("q", affinity=needs_node(label_in(ZONE, "a"))),
    ),
)
