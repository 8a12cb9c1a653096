"""Alerts on node exporters that answer, and do not expose what they should: no GPU, old data, no allocations."""

from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

EMPTY = """
(
  node:gpu_exporter_up:ratio{node!=""} >= 0.5
  unless on (cluster, node)
  (
    max by (cluster, node) (gpugauge_devices_observed{node!=""}) > 0
    or
    group by (cluster, node) (gpugauge_device_info{node!=""})
    unless on (cluster, node)
    gpugauge_devices_observed
  )
  or
  max by (cluster, node) (gpugauge_source_up{node!="", source=~"dcgm|nvml|simulated"}) == 0
)
unless on (cluster, node)
(
  max by (cluster, node) (gpugauge_devices_expected{node!=""}) == 0
  unless on (cluster, node)
  max by (cluster, node) (gpugauge_node_gpu_capacity{resource!~"nvidia_com_[A-Z].*"}) > 0
)
unless on (cluster, node)
max by (cluster, node) (gpugauge_node_gpu_capacity{resource=~"nvidia_com_[A-Z].*"}) > 0
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig"}
"""
"""It answers, and exposes no GPU that it reads, or every source of GPUs is down. A node without GPUs expects none, and
one that gives them to virtual machines (resources with capital letters) cannot read them."""

STALE = """
(time() - max by (cluster, node) (gpugauge_last_collection_timestamp_seconds{node!=""})) > 300
"""

NOT_ATTRIBUTED = """
(
  max by (cluster, node) (gpugauge_source_up{node!="", source="kubelet"}) == 0
  or
  sum by (cluster, node) (max by (cluster, node, resource) (gpugauge_node_gpu_requested{node!=""})) > 0
  and on (cluster, node)
  max by (cluster, node) (gpugauge_devices_observed{node!=""}) > 0
  unless on (cluster, node)
  (
    max by (cluster, node) (gpugauge_device_allocated_pods{node!=""}) > 0
    or
    group by (cluster, node) (gpugauge_allocation_info{node!=""})
  )
)
unless on (cluster, node)
gpugauge_node_maintenance{reason=~"driver_upgrade|mig_reconfig|scale_down"}
"""
"""The kubelet does not answer, or pods on the node request GPUs and not one is allocated."""

SOURCE_ERRORS = """
max by (cluster, node, source) (
  avg_over_time(gpugauge_source_up{node!="", source!~"dcgm|nvml"}[30m])
) < 0.95
or
max by (cluster, node) (avg_over_time(gpugauge_source_up{node!="", source=~"dcgm|nvml"}[30m])) < 0.95
"""
"""GPUs may be read from either of two sources: one of them is enough."""

UNSEEN = """
sum by (cluster, node, resource) (
  max by (cluster, node, resource, reason) (
    gpugauge_unmatched_device_ids{
      node!="", resource!~"nvidia_com_[A-Z].*", reason=~"no_such_gpu|no_such_instance|partitioned"
    }
  )
) > 0
"""

UNMATCHED = """
sum by (cluster, node, resource) (
  max by (cluster, node, resource, reason) (
    gpugauge_unmatched_device_ids{node!="", reason=~"unknown_form|empty|unresolved_claim"}
  )
) > 0
"""

REJECTED_VALUES = """
sum by (cluster, node) (
  max by (cluster, node, field, reason) (
    rate(gpugauge_rejected_values_total{node!="", reason=~"out_of_range|stale"}[30m])
  )
) > 0
"""
"""Blank values are no fault: fields that a GPU does not have are blank on every read."""

GROUP = Group(
    "gpugauge-blind-exporters",
    (
        Alert(
            "GPUExporterEmpty",
            EMPTY,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The GPU exporter of node {{ $labels.node }} answers and reads no GPU.",
            description=(
                "The GPU exporter of node {{ $labels.node }} answers, and exposes no GPU that it can read: driver, "
                "host engine or device files are missing. Utilization, hardware errors and allocations are unknown."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUExporterStale",
            STALE,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="The GPU exporter of node {{ $labels.node }} exposes data of {{ $value | asDuration }} ago.",
            description=(
                "What the GPU exporter of node {{ $labels.node }} exposes was read {{ $value | asDuration }} ago. "
                "Panels and alerts take it for the present."
            ),
            for_="5m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUAttributionBroken",
            NOT_ATTRIBUTED,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.TICKET,
            summary="It is not known which pods have the GPUs of node {{ $labels.node }}.",
            description=(
                "The GPU exporter of node {{ $labels.node }} reads GPUs and cannot tell which pods they are allocated "
                "to: the kubelet does not answer it, or lists no GPU although pods request some. Alerts and panels "
                "about pods lack this node."
            ),
            for_="15m",
            keep_firing_for="5m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUExporterCollectionErrors",
            SOURCE_ERRORS,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.DIGEST,
            summary="The GPU exporter of node {{ $labels.node }} often cannot read a source.",
            description=(
                "In the last 30 minutes the GPU exporter of node {{ $labels.node }} could read "
                "{{ with $labels.source }}the source {{ . }}{{ else }}its GPUs{{ end }} in {{ $value | asPercent }} of "
                "all collections. The data have holes."
            ),
            for_="15m",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUAllocatedDeviceUnseen",
            UNSEEN,
            Severity.WARNING,
            Area.REGISTRATION,
            Notify.TICKET,
            summary="Node {{ $labels.node }} has {{ $value }} allocated devices that are not there.",
            description=(
                "The kubelet of node {{ $labels.node }} lists {{ $value }} devices of {{ $labels.resource }} as "
                "allocated to containers, and the exporter finds no such GPU or MIG device: it is lost, or the MIG "
                "layout was changed while pods had it."
            ),
            for_="10m",
            keep_firing_for="5m",
            family=AlertFamily.REGISTRATION,
            dashboard=DashboardUid.NODE,
        ),
        Alert(
            "GPUUnmatchedDevices",
            UNMATCHED,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.DIGEST,
            summary="Device ids of {{ $labels.resource }} on node {{ $labels.node }} match no device.",
            description=(
                "The kubelet of node {{ $labels.node }} lists {{ $value }} device ids of {{ $labels.resource }} that "
                "cannot be matched with a device: pods that have them are missing from panels and alerts."
            ),
            for_="30m",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
        Alert(
            "GPUValuesRejected",
            REJECTED_VALUES,
            Severity.WARNING,
            Area.EXPORTER,
            Notify.DIGEST,
            summary="GPUs of node {{ $labels.node }} report values that cannot be true.",
            description=(
                "For an hour values of GPUs of node {{ $labels.node }} were out of range or old, and were not exposed. "
                "gpugauge_rejected_values_total says which fields."
            ),
            for_="1h",
            keep_firing_for="15m",
            family=AlertFamily.EXPORTER,
            dashboard=DashboardUid.EXPORTER,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
