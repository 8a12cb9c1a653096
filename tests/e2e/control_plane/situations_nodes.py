"""Situations that nodes decide by their state, their taints, what else they have, and where they are."""

from simulators.objects import cordoned, not_ready
from tests.e2e.control_plane.situation import (
    cpu,
    h100,
    holding,
    label_in,
    needs_node,
    pod,
    situation,
    taint,
    without_toleration,
)

UNREACHABLE = [taint("node.kubernetes.io/unreachable"), taint("node.kubernetes.io/unreachable", effect="NoExecute")]
TEAM = taint("example.com/team", "vision")
ZONE = "topology.kubernetes.io/zone"
LEAVING = {
    "autoscaler": "ToBeDeletedByClusterAutoscaler",
    "karpenter": "karpenter.sh/disrupted",
    "new": "node.cloudprovider.kubernetes.io/uninitialized",
    "stopped": "node.kubernetes.io/out-of-service",
    "memory": "node.kubernetes.io/memory-pressure",
}
"""Taints by which components say that a node takes no pods for its own state."""
RDMA = "rdma/hca"


def runtime(name, **overhead):
    """A RuntimeClass whose pods take more than their containers request."""
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}}
    return {**kind, "handler": name, "overhead": {"podFixed": overhead}}


def lost(node):
    """The node as after its kubelet stopped reporting, with the taints that the node lifecycle controller adds."""
    made = not_ready(node)
    made["spec"]["taints"] = UNREACHABLE
    return made


def spread(app):
    """Fields of a pod whose group must be spread over zones."""
    selector = {"matchLabels": {"group": app}}
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


def grouped(made, app):
    made["metadata"]["labels"]["group"] = app
    return made


def beside(app, kind="podAffinity"):
    """The field `affinity` of a pod that must be on a node with pods of a group, or with `podAntiAffinity` must not."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"group": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def port(made):
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 29500, "hostPort": 29500}]
    return made


SITUATIONS = (
    situation("cordoned", "node_unavailable", cordoned(h100("n1")), pod()),
    situation("cordoned-and-cpu", "node_unavailable", cordoned(h100("n1")), cpu("n2"), cpu("n3"), pod()),
    situation("cordoned-and-full", "insufficient_gpu", cordoned(h100("n1")), h100("n2"), holding("h", "n2"), pod()),
    situation("lost", "node_unavailable", lost(h100("n1")), pod()),
    situation("lost-and-cpu", "node_unavailable", lost(h100("n1")), cpu("n2"), pod()),
    situation("no-node", "node_unavailable", pod()),
    situation(
        "pressure",
        "node_unavailable",
        h100("n1", taints=[taint("node.kubernetes.io/disk-pressure")]),
        h100("n2", taints=[taint("node.kubernetes.io/network-unavailable")]),
        pod(),
    ),
    situation(
        "leaving",
        dict.fromkeys(LEAVING, "node_unavailable"),
        *(h100(name, labels={"pool": name}, taints=[taint(key)]) for name, key in LEAVING.items()),
        *(pod(name, nodeSelector={"pool": name}) for name in LEAVING),
    ),
    situation("teams-node", "taint", h100("n1", taints=[TEAM]), cpu("n2"), pod()),
    situation(
        "usual-taint",
        "taint",
        h100("n1", taints=[taint("nvidia.com/gpu", "present")]),
        cpu("n2"),
        without_toleration(pod()),
    ),
    situation(
        "tainted-free-open-full",
        "insufficient_gpu",
        h100("n1", taints=[TEAM]),
        h100("n2"),
        holding("h", "n2"),
        pod(),
    ),
    situation(
        "older-driver",
        "taint",
        h100("n1", taints=[taint("example.com/generation", "3")]),
        pod(
            tolerations=[{"key": "example.com/generation", "operator": "Gt", "value": "4", "effect": "NoSchedule"}],
        ),
    ),
    situation("memory-never-enough", "insufficient_cpu_or_memory", h100("n1"), pod(memory="4Ti")),
    situation(
        "cpu-taken",
        "insufficient_cpu_or_memory",
        h100("n1", resources={"cpu": 16}),
        holding("h", "n1", 1, cpu="12"),
        pod(cpu="8"),
    ),
    situation(
        "cpu-taken-by-others",
        "insufficient_cpu_or_memory",
        h100("n1", resources={"cpu": 16}),
        holding("h", "n1", 0, cpu="12"),
        pod(cpu="8"),
    ),
    situation(
        "overhead",
        "insufficient_cpu_or_memory",
        h100("n1"),
        runtime("sandboxed", cpu="100"),
        pod(cpu="60", runtimeClassName="sandboxed"),
    ),
    situation("pods-taken", "insufficient_other", h100("n1", resources={"pods": 1}), holding("h", "n1", 1), pod()),
    situation("rdma-taken", "insufficient_other", h100("n1", resources={RDMA: 1}), pod(asks={RDMA: 2})),
    situation("huge-pages", "insufficient_cpu_or_memory", h100("n1"), pod(asks={"hugepages-2Mi": "4Gi"})),
    situation("scratch-space", "insufficient_other", h100("n1"), pod(asks={"ephemeral-storage": "3Ti"})),
    situation(
        "spread-over-zones",
        "topology",
        h100("n1", labels={ZONE: "a"}),
        h100("n2", labels={ZONE: "b"}),
        grouped(holding("h1", "n1", 1), "g"),
        holding("h2", "n2"),
        grouped(pod(**spread("g")), "g"),
    ),
    situation("spread-without-label", "topology", h100("n1"), grouped(pod(**spread("g")), "g")),
    situation(
        "kept-away-by-others",
        "node_selector_or_affinity",
        h100("n1"),
        grouped(holding("h", "n1", 1, affinity=beside("g", "podAntiAffinity")), "other"),
        grouped(pod(), "g"),
    ),
    situation("beside-nobody", "node_selector_or_affinity", h100("n1"), pod(affinity=beside("g"))),
    situation(
        "not-beside-its-own",
        "node_selector_or_affinity",
        h100("n1"),
        grouped(holding("h1", "n1", 1), "g"),
        grouped(pod(affinity=beside("g", "podAntiAffinity")), "g"),
    ),
    situation("port-taken", "other", h100("n1"), port(holding("h", "n1", 1)), port(pod())),
    situation(
        "everything-at-once",
        {
            "big": "unsatisfiable_size",
            "six": "fragmentation",
            "zone": "node_selector_or_affinity",
            "memory": "insufficient_cpu_or_memory",
            "vision": "taint",
            "closed": "node_unavailable",
            "dead": "node_unavailable",
            "broken": "gpu_unavailable",
            "typo": "unknown_resource",
        },
        h100("n1"),
        h100("n2"),
        h100("n3", taints=[TEAM], labels={"pool": "vision"}),
        cordoned(h100("n4", labels={"pool": "closed"})),
        lost(h100("n5", labels={"pool": "dead"})),
        h100("n6", 0, labels={"pool": "broken"}),
        cpu("n7"),
        holding("h1", "n1", 4),
        holding("h2", "n2", 4),
        pod("big", 9),
        pod("six", 6),
        pod("zone", affinity=needs_node(label_in(ZONE, "x"))),
        pod("memory", memory="3Ti"),
        pod("vision", nodeSelector={"pool": "vision"}),
        pod("closed", nodeSelector={"pool": "closed"}),
        pod("dead", nodeSelector={"pool": "dead"}),
        pod("broken", nodeSelector={"pool": "broken"}),
        pod("typo", 0, asks={"nvidia.com/gpus": 1}),
    ),
)
