"""The flags of the cluster watcher, and of the names of GPU resources, which the node exporter has too."""

from exporter.cluster.config import NAMESPACE_NAMES, NODE_NAMES
from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.flags.flag import Flag
from exporter.flags.values import FILE, NAMESPACED_NAME, RESOURCE_PATTERNS, SECONDS, mapping, text_value

RESOURCE_NAMES = Flag(
    "nvidia-resource-names",
    RESOURCE_PATTERNS,
    "further resource names that mean GPUs, separated by commas; `*` stands for any text",
    variable="NVIDIA_RESOURCE_NAMES",
)
API_SERVER = (
    Flag("kubeconfig", FILE, "without it, the pod's service account is used", variable="KUBECONFIG"),
    Flag("context", text_value("NAME"), "context of the kubeconfig"),
    Flag("api-server", text_value("URL"), "a plain address without authentication"),
    RESOURCE_NAMES,
)
METADATA_LABELS = (
    Flag(
        "namespace-labels",
        mapping(*NAMESPACE_NAMES),
        "labels of namespaces that say who pays for them, for gpugauge_namespace_info",
        default="team=team,cost_center=cost-center,environment=environment",
    ),
    Flag(
        "node-labels",
        mapping(*NODE_NAMES),
        "labels of nodes that say where they stand, for gpugauge_node_info",
        default="zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack",
    ),
)
LEASE = Flag(
    "lease",
    NAMESPACED_NAME,
    "Lease by which several replicas agree which one exposes what is known of the cluster; not needed for one replica",
    variable="GPUGAUGE_LEASE",
)
PRICES = Flag(
    "prices",
    FILE,
    "YAML file with rows of model, pool, capacity_type, currency, per_hour and valid_from, for "
    "gpugauge_price_per_hour; read again when it changes",
    variable="GPUGAUGE_PRICES",
)
INTERVAL = Flag("interval", SECONDS, "seconds between collections", default=f"{DEFAULT_INTERVAL_SECONDS:.0f}")
