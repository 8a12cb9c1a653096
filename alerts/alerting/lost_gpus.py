"""The alert GPULost: a GPU that is known cannot be read, or a node has fewer GPUs than it should have."""

from alerts.alerting.gpu_texts import GPU, PLACE
from alerts.rules.rule import Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

LOST = """
(
  max by (cluster, node, UUID) (gpugauge_device_up{UUID!="", node!=""}) == 0
  unless on (cluster, node, UUID)
  gpugauge_allocation_info{sharing="passthrough"}
  or
  (
    max by (cluster, node) (gpugauge_devices_expected{node!=""})
    - on (cluster, node)
    max by (cluster, node) (gpugauge_devices_observed{node!=""})
    - on (cluster, node)
    (
      count by (cluster, node) (max by (cluster, node, UUID) (gpugauge_device_up{UUID!="", node!=""}) == 0)
      or on (cluster, node)
      0 * max by (cluster, node) (gpugauge_devices_expected{node!=""})
    )
    - on (cluster, node)
    (
      sum by (cluster, node) (
        max by (cluster, node, resource) (gpugauge_node_gpu_capacity{resource=~"nvidia_com_[A-Z].*"})
      )
      or on (cluster, node)
      sum by (cluster, node) (
        max by (cluster, node, resource) (
          gpugauge_unmatched_device_ids{node!="", reason="no_such_gpu", resource=~"nvidia_com_[A-Z].*"}
        )
      )
      or on (cluster, node)
      0 * max by (cluster, node) (gpugauge_devices_expected{node!=""})
    )
    > 0
  )
)
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig"}
"""
"""GPUs that are known by UUID, one alert each, and one alert for how many more a node lacks. A GPU that a virtual
machine has been given is not lost: it is allocated as passthrough, or its resource is written with capital letters, as
the device plugins for virtual machines name it. While the driver or the MIG layout is changed, GPUs cannot be read."""

_WHAT = f"{{{{ if $labels.UUID }}}}{GPU}{PLACE}{{{{ else }}}}Node {{{{ $labels.node }}}}{PLACE}{{{{ end }}}}"

GROUP = Group(
    "gpugauge-lost-gpus",
    (
        Alert(
            "GPULost",
            LOST,
            Severity.CRITICAL,
            Area.HARDWARE,
            Notify.PAGE,
            summary=(
                "{{ if $labels.UUID }}GPU {{ $labels.UUID }} of node {{ $labels.node }} cannot be read."
                "{{ else }}Node {{ $labels.node }} lacks {{ $value }} of its GPUs.{{ end }}"
            ),
            description=(
                f"{_WHAT} {{{{ if $labels.UUID }}}}is known and cannot be read: it has fallen off the bus, hangs or "
                "needs a reset.{{ else }}lacks {{ $value }} of the GPUs that it should have: they were not found when "
                "the exporter or the driver started.{{ end }} Pods that have it fail or hang."
            ),
            for_="10m",
            keep_firing_for="10m",
            family=AlertFamily.LOST,
            dashboard=DashboardUid.NODE,
        ),
    ),
)
