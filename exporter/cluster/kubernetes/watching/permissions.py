"""What the watcher asks the API server for: the one table of groups, resources and verbs.

The code takes from it what it lists and watches, and where; the roles in `deploy` and `docs/permissions.md` are
generated from it. Pods, nodes and namespaces are needed. Every other part is optional: a rule of its own allows it, and
where that is missing, or the API server does not serve it, only what the part says is missing.
"""

from dataclasses import dataclass, replace

from exporter.api_objects.device_claims import DRA_GROUP, DRA_VERSIONS
from exporter.cluster.kubernetes.converting import autoscaler_status

LEASE = "gpugauge-cluster"
"""The name of the lease that the shipped role allows; another one needs a role of its own."""
_READ = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Permission:
    """Resources of one API group that are requested for one purpose: one rule of a role."""

    name: str
    group: str
    """Empty for the core group."""
    resources: tuple[str, ...]
    purpose: str
    """What is found from them."""
    missing: str
    """What is missing without them."""
    versions: tuple[str, ...] = ("v1",)
    """Those that are understood, the preferred one first."""
    verbs: tuple[str, ...] = _READ
    object_names: tuple[str, ...] = ()
    """Only these objects are requested; empty for all."""
    namespace: str = ""
    """Only the objects of this namespace are requested; empty for all."""
    needed: bool = False

    def paths(self, resource: str) -> tuple[str, ...]:
        """Where a resource is requested, of each version."""
        place = f"namespaces/{self.namespace}/{resource}" if self.namespace else resource
        root = f"/apis/{self.group}" if self.group else "/api"
        return tuple(f"{root}/{version}/{place}" for version in self.versions)

    def query(self) -> dict[str, str]:
        """The parameters that select the objects with these names: a rule that names objects allows no other list."""
        selected = ",".join(f"metadata.name={name}" for name in self.object_names)
        return {"fieldSelector": selected} if selected else {}


WATCHED = (
    Permission(
        "Pods, nodes, namespaces",
        "",
        ("pods", "nodes", "namespaces"),
        "Pods: which request GPUs, which are pending and why. Nodes: their GPUs and taints. Namespaces: overrides.",
        "Everything: the watcher is not ready.",
        needed=True,
    ),
    Permission(
        "Events",
        "",
        ("events",),
        "What keeps a bound pod from starting, what an autoscaler decides, and pods that a quota rejects.",
        "`volume` and `start_failed` where no status has the cause, `quota` of Jobs, StatefulSets and DaemonSets, and "
        "`scaling_up` as an autoscaler announces it.",
    ),
    Permission(
        "Quotas",
        "",
        ("resourcequotas",),
        "How many GPUs a namespace may request, and how many it does.",
        "`gpugauge_quota_hard` and `gpugauge_quota_used`.",
    ),
    Permission(
        "Dynamic resource allocation",
        DRA_GROUP,
        ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"),
        "Pods that ask for GPUs through ResourceClaims, and the GPUs of nodes that offer them so.",
        "What ResourceClaims ask for (pods that run with them are missing, pending ones have the resource "
        "`resourceclaim`), the reason `claim`, the capacity of nodes whose GPUs a DRA driver offers, and "
        "`gpugauge_node_device_plugin_registered`.",
        versions=DRA_VERSIONS,
    ),
    Permission(
        "Controllers",
        "apps",
        ("replicasets", "statefulsets", "daemonsets"),
        "Controllers whose pods cannot be made.",
        "Deployments, StatefulSets and DaemonSets without pods in `gpugauge_pending_workloads`.",
    ),
    Permission(
        "Jobs",
        "batch",
        ("jobs",),
        "Jobs whose pods cannot be made, and suspended ones that wait in a queue.",
        "Jobs without pods in `gpugauge_pending_workloads`.",
    ),
    Permission(
        "Karpenter",
        "karpenter.sh",
        ("nodepools",),
        "Whether it could make nodes with GPUs for a pod that fits on none.",
        "Pods that fit on no node are `unsatisfiable_size` or `unknown_resource` although a node could be made.",
        versions=("v1", "v1beta1"),
    ),
    Permission(
        "Cluster autoscaler",
        "",
        ("configmaps",),
        "Which node groups grow, and which can no longer. This ConfigMap alone, which lists by its name.",
        "That a scale-up has failed or a node group is full; without events also `scaling_up`.",
        object_names=(autoscaler_status.NAME,),
        namespace=autoscaler_status.NAMESPACE,
    ),
    Permission(
        "Kueue",
        "kueue.x-k8s.io",
        ("workloads",),
        "Work that waits in its queues.",
        "Workloads without pods in `gpugauge_pending_workloads`, and queues by name.",
        versions=("v1beta2", "v1beta1"),
    ),
)
"""What every watcher lists and watches."""

NOT_EXPLAINED = frozenset({"namespaces", "resourcequotas"})
"""Resources that `gpugauge explain` does not read: the watcher has metrics of them, and they explain no pod."""

EXPLAINED = tuple(
    replace(part, resources=read, verbs=("list",))
    for part in WATCHED
    if (read := tuple(each for each in part.resources if each not in NOT_EXPLAINED))
)
"""What `gpugauge explain` lists for the person who runs it."""

LEASE_PARTS = (
    Permission(
        "Creating the lease",
        "coordination.k8s.io",
        ("leases",),
        "The first replica makes it. No rule can restrict `create` to one name.",
        "Neither replica leads until someone has made the lease.",
        verbs=("create",),
        needed=True,
    ),
    Permission(
        "Keeping the lease",
        "coordination.k8s.io",
        ("leases",),
        "Each replica reads it, and the one that leads renews it.",
        "Neither replica leads, and neither is ready.",
        verbs=("get", "update"),
        object_names=(LEASE,),
        needed=True,
    ),
)
"""What two replicas need beside it, in their own namespace."""
