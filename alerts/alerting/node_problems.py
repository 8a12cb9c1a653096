"""The alert on problems that NVSentinel, node-problem-detector or the EKS node monitoring agent find with GPUs."""

from alerts.alerting.gpu_texts import PLACE
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, AlertFamily, Area, DashboardUid, Group, Notify, Severity

REPORTED = """
count by (cluster, node) (group by (cluster, node, writer, problem) (gpugauge_node_problem{node!=""}))
unless on (cluster, node)
ALERTS{
  alertstate="firing", component="gpu", area="hardware", severity="critical", alertname!="GPUNodeProblemReported"
}
unless on (cluster, node)
gpugauge_node_maintenance{reason="planned"}
"""
"""Once per node, however many programs tell of it, and not where an alert of ours does already: what they saw is what
the exporter saw."""

_PROBLEMS = (
    """{{ range $i, $s := printf "gpugauge_node_problem{cluster=%q,node=%q}" $labels.cluster $labels.node | query """
    """| sortByLabel "problem" }}{{ if $i }}, {{ end }}{{ .Labels.problem }} ({{ .Labels.writer }}){{ end }}"""
)

GROUP = Group(
    "gpugauge-node-problems",
    (
        Alert(
            "GPUNodeProblemReported",
            REPORTED,
            Severity.CRITICAL,
            Area.HARDWARE,
            Notify.TICKET,
            summary="Another program reports a problem with GPUs of node {{ $labels.node }}.",
            description=(
                f"Node {{{{ $labels.node }}}}{PLACE} is marked for its GPUs: {_PROBLEMS}. The exporter has seen "
                "nothing of it that is critical."
            ),
            for_="5m",
            family=AlertFamily.NODE,
            dashboard=DashboardUid.NODE,
        ),
    ),
    interval=QUICK_INTERVAL_SECONDS,
)
