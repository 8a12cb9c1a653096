"""Inhibitions: an alert that fires and explains another one suppresses its notifications.

Alerts are named on both sides, and no alert is on both sides of one inhibition: such an alert could not be suppressed.
A label that is missing on both sides counts as equal in Alertmanager, so no label that must be equal may be empty, but
`cluster`, which a single cluster lacks.
"""

from dataclasses import dataclass

from alerts.routing.routes import Matcher

MAY_BE_EMPTY = "cluster"


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While one of `sources` fires, `targets` with the same values of the labels in `equal` notify nobody."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...]

    def matchers(self, names: tuple[str, ...]) -> tuple[Matcher, ...]:
        """The conditions on one side: these names, and no empty label that must be equal."""
        filled = (Matcher(label, ".+", regex=True) for label in self.equal if label != MAY_BE_EMPTY)
        return Matcher("alertname", "|".join(names), regex=len(names) > 1), *filled


NODE = ("cluster", "node")
GPU = ("cluster", "node", "UUID")

INHIBITIONS: tuple[Inhibition, ...] = (
    # A node that is down answers no scrape. Alerts on hardware are no targets: whoever repairs the node needs them.
    Inhibition(("KubeNodeNotReady", "KubeNodeUnreachable"), ("GPUExporterDown",), NODE),
    # A node that is not ready offers no GPUs.
    Inhibition(
        ("KubeNodeNotReady", "KubeNodeUnreachable"),
        ("GPUDevicePluginNotRegistered", "GPUNodeDevicesUnhealthy", "GPUNodeCordonedWithGPUs"),
        NODE,
    ),
    # A GPU that is lost explains why fewer are offered, read and found.
    Inhibition(
        ("GPULost",),
        (
            "GPUExporterEmpty",
            "GPUNodeCapacityMismatch",
            "GPUNodeDevicesUnhealthy",
            "GPUAllocatedDeviceUnseen",
        ),
        NODE,
    ),
    Inhibition(("GPULost", "GPUXidCritical"), ("GPUXidWarning", "GPUXidApplication"), GPU),
    # A GPU that is to be replaced needs no reset.
    Inhibition(("GPURowRemapFailed",), ("GPURowRemapPending", "GPURowRemapExhausting"), GPU),
    # What an exporter that is down, blind or late exposes is of no use.
    Inhibition(
        ("GPUExporterDown", "GPUExporterEmpty", "GPUExporterStale"),
        (
            "GPUAttributionBroken",
            "GPUExporterCollectionErrors",
            "GPUExporterSlow",
            "GPUMemoryUsedUnallocated",
            "GPUProfilingMetricsMissing",
            "GPUUnmatchedDevices",
        ),
        NODE,
    ),
    Inhibition(("GPUAttributionBroken",), ("GPUExporterCollectionErrors", "GPUMemoryUsedUnallocated"), NODE),
    # A common cause is one page.
    Inhibition(("GPUFleetBlind",), ("GPUExporterDown",), ("cluster",)),
    # Without the exporter the utilization of the node's pods is unknown.
    Inhibition(("GPUExporterDown",), ("GPUPodLowUtilization",), NODE),
)
