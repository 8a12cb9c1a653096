{{/* What a monitor says of an endpoint of either kind. In: root, component. */}}
{{- define "gpugauge.endpoint" -}}
{{- $v := .root.Values -}}
port: metrics
path: /metrics
interval: {{ $v.monitoring.interval }}
scrapeTimeout: {{ include "gpugauge.scrapeTimeout" .root }}
# The labels namespace, pod and container name the container that a GPU is allocated to. Without honorLabels Prometheus
# would rename them to exported_….
honorLabels: true
{{- if $v.tls.enabled }}
scheme: https
tlsConfig:
  serverName: {{ include "gpugauge.serverName" .root }}
  ca:
    secret:
      name: {{ default (include "gpugauge.tlsSecret" .root) $v.tls.ca.existingSecret }}
      key: {{ $v.tls.ca.key }}
{{- end }}
{{- if $v.basicAuth.enabled }}
basicAuth:
  username:
    name: {{ $v.basicAuth.existingSecret }}
    key: username
  password:
    name: {{ $v.basicAuth.existingSecret }}
    key: password
{{- end }}
{{- if include "gpugauge.proxied" .root }}
{{- if $v.auth.prometheus.tokenSecret.name }}
authorization:
  type: Bearer
  credentials:
    name: {{ $v.auth.prometheus.tokenSecret.name }}
    key: {{ $v.auth.prometheus.tokenSecret.key }}
{{- else }}
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- end }}
{{- end }}
relabelings:
  - action: replace
    targetLabel: job
    replacement: gpugauge-{{ .component }}
  {{- if eq .component "node" }}
  # For `up`, which has only the labels of the target: the alert on a missing exporter names the node.
  - action: replace
    sourceLabels: ["__meta_kubernetes_pod_node_name"]
    targetLabel: node
  {{- end }}
  {{- with $v.monitoring.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $v.monitoring.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
