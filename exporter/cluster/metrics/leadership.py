"""The metric that tells the replicas of the watcher apart."""

from exporter.metric import Family, Kind, metric

LEADER = metric(
    "gpugauge_leader",
    Kind.GAUGE,
    "Whether this replica of the watcher leads and exposes what is known of the cluster; absent without --lease.",
)
METRICS = (LEADER,)


def leader_family(*, leads: bool) -> Family:
    """The family of a replica that takes part in the election of a lease."""
    return Family(LEADER, [LEADER.sample(int(leads))])
