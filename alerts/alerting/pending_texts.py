"""Templates in the texts of alerts on pending workloads: what Prometheus knows of it, and what would free GPUs."""

PODS = (
    """{{ with printf "workload:gpu_pending_pods:count{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | value }}{{ end }}"""
)
REASON = (
    """{{ with printf "workload:gpu_pending_oldest:info{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | label "reason" }}{{ end }}"""
)
POD = (
    """{{ with printf "workload:gpu_pending_oldest:info{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ . | first | label "pod" }}{{ end }}"""
)
COUNTS = (
    """{{ range $i, $s := printf """
    """"workload:gpu_pending_pods_by_reason:count{cluster=%q,namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query | sortByLabel "reason" }}"""
    """{{ if $i }}, {{ end }}{{ .Value }} {{ .Labels.reason }}{{ end }}"""
)

BIGGEST_IDLE = (
    """{{ range $i, $s := printf "topk(3, sum by (namespace, workload) ("""
    """(workload:gpu_idle_devices:count15m{cluster=%q} and on (resource) """
    """namespace:gpu_pending_model:info{cluster=%q,namespace=%q,model='any'} """
    """or workload:gpu_idle_devices:count15m{cluster=%q} and on (resource, model) """
    """namespace:gpu_pending_model:info{cluster=%q,namespace=%q}) and on (resource) """
    """gpugauge_pending_workload_since_timestamp_seconds"""
    """{cluster=%q,gpu_namespace=%q,workload=%q,workload_type=%q}))" """
    """$labels.cluster $labels.cluster $labels.namespace $labels.cluster $labels.cluster $labels.namespace """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """{{ if $i }}, {{ end }}{{ .Labels.namespace }}/{{ .Labels.workload }} ({{ .Value }}){{ end }}"""
)
IDLE = (
    """{{ with printf """
    """"workload:gpu_pending_idle_devices:sum{cluster=%q,namespace=%q,workload=%q,workload_type=%q} > 0" """
    """$labels.cluster $labels.namespace $labels.workload $labels.workload_type | query }}"""
    """ Allocated and idle are {{ . | first | value }} of the devices that it could use, most of them of """
    f"""{BIGGEST_IDLE}.{{{{ end }}}}"""
)
STRANDED = (
    """{{ range printf "cluster:gpu_stranded:sum{cluster=%q} > 0 and on (resource) """
    """gpugauge_pending_workload_since_timestamp_seconds"""
    """{cluster=%q,gpu_namespace=%q,workload=%q,workload_type=%q}" """
    """$labels.cluster $labels.cluster $labels.namespace $labels.workload $labels.workload_type | query """
    """| sortByLabel "blocker" }}"""
    """ Free and of no use are {{ .Value }}: their node lacks {{ .Labels.blocker }}.{{ end }}"""
)
OWNER = "{{ $labels.workload_type }} {{ $labels.namespace }}/{{ $labels.workload }}"
