"""Whether the monitoring itself can see: node exporters and the watcher."""

from alerts.rule import Alert, Area, Group, Notify, Severity

NODE = "cluster, node"

EXPORTER_DOWN = f"""(
  max by ({NODE}) (up{{job="gpugauge-node"}}) == 0
  or
  (
    max by ({NODE}) (gpugauge_node_gpu_allocatable) > 0
    unless on ({NODE}) up{{job="gpugauge-node"}}
    unless on ({NODE}) gpu_instance:gpugauge_device:info
  )
)
unless on ({NODE}) gpugauge_node_maintenance"""
"""A target that does not answer, or a node with GPUs that no target speaks for and no page of any exporter shows.

Nodes under maintenance lose their exporter by design: a driver upgrade evicts it.
"""

WATCHER_DOWN = """group by (cluster) (present_over_time(up{job=~"gpugauge-node|gpugauge-cluster"}[1h]))
unless on (cluster)
(max by (cluster) (up{job="gpugauge-cluster"}) == 1)"""
"""Where gpugauge is scraped, or was within the hour, some watcher must answer; one of two replicas is enough."""

GROUP = Group(
    "gpugauge-exporters",
    (
        Alert(
            "GPUExporterDown",
            EXPORTER_DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The GPUs of node {{ $labels.node }} are not seen.",
            description=(
                "No GPU exporter on node {{ $labels.node }} has answered for 10 minutes: its utilisation, its "
                "hardware errors and the holders of its GPUs are unknown."
            ),
            wait="10m",
            keep="5m",
        ),
        Alert(
            "GPUWatcherDown",
            WATCHER_DOWN,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="No GPU watcher answers{{ with $labels.cluster }} in cluster {{ . }}{{ end }}.",
            description=(
                "No cluster watcher has answered for 10 minutes: pending reasons, owners, classes and opt-outs of "
                "GPU pods are unknown, and alerts that need them are silent."
            ),
            wait="10m",
            keep="5m",
        ),
    ),
)
