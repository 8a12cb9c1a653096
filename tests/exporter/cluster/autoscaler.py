"""The status ConfigMap of the cluster autoscaler in both its forms."""

from datetime import UTC, datetime

from tests.exporter.cluster.fixture import NOW

GKE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-main-{}-1a2b3c4d-grp"


def group(name, target=1, largest=3, scale_up="NoActivity", health="Healthy"):
    return name, target, largest, scale_up, health


def yaml_status(*groups, at=NOW):
    lines = [
        f"time: {_time(at)}",
        "autoscalerStatus: Running",
        "clusterWide:",
        "  health:",
        "    status: Healthy",
        "  scaleUp:",
        "    status: NoActivity",
        "nodeGroups:" if groups else "nodeGroups: []",
    ]
    for name, target, largest, scale_up, health in groups:
        lines += [
            f"- name: {name}",
            "  health:",
            f"    status: {health}",
            "    nodeCounts:",
            "      registered: {total: 1, ready: 1}",
            f"    cloudProviderTarget: {target}",
            "    minSize: 0",
            f"    maxSize: {largest}",
            f"    lastProbeTime: {_time(at)}",
            "  scaleUp:",
            f"    status: {scale_up}",
            "    backoffInfo: {errorCode: QUOTA_EXCEEDED}",
            "  scaleDown:",
            "    status: NoCandidates",
        ]
    return "\n".join(lines)


def text_status(*groups, at=NOW):
    counts = "ready=1 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=1 longUnregistered=0"
    probe = f"               LastProbeTime:      {_time(at)}"
    lines = [
        f"Cluster-autoscaler status at {_time(at)}:",
        "Cluster-wide:",
        f"  Health:      Healthy ({counts})",
        probe,
        "  ScaleUp:     NoActivity (ready=1 registered=1)",
        probe,
        "",
        "NodeGroups:",
    ]
    for name, target, largest, scale_up, health in groups:
        lines += [
            f"  Name:        {name}",
            f"  Health:      {health} ({counts} cloudProviderTarget={target} (minSize=0, maxSize={largest}))",
            probe,
            f"  ScaleUp:     {scale_up} (ready=1 cloudProviderTarget={target})",
            probe,
            "  ScaleDown:   NoCandidates (candidates=0)",
            probe,
            "",
        ]
    return "\n".join(lines)


def _time(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.546750398 +0000 UTC")


def config_map(status, name="cluster-autoscaler-status"):
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}, "data": {"status": status}}
