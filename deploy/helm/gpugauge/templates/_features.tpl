{{/* What the values ask for. Each answers "true" or nothing. */}}

{{- define "gpugauge.attribution" -}}
{{- if and .Values.attribution.enabled (not .Values.restricted) }}true{{ end -}}
{{- end }}

{{/* SYS_ADMIN: profiling fields that an embedded engine reads. */}}
{{- define "gpugauge.sysAdmin" -}}
{{- if and .Values.profiling.enabled (not .Values.restricted) (not .Values.hostEngine.address) (has .Values.source (list "auto" "dcgm")) }}true{{ end -}}
{{- end }}

{{- define "gpugauge.hostEngineSocket" -}}
{{- if hasPrefix "unix://" .Values.hostEngine.address }}{{ trimPrefix "unix://" .Values.hostEngine.address }}{{ end -}}
{{- end }}

{{/* User 0: the kubelet's socket, a capability, or a folder of the node. */}}
{{- define "gpugauge.root" -}}
{{- if or (include "gpugauge.attribution" .) (include "gpugauge.sysAdmin" .) (include "gpugauge.hostEngineSocket" .) .Values.stateFile.enabled .Values.processMetrics.enabled }}true{{ end -}}
{{- end }}

{{- define "gpugauge.podMetadata" -}}
{{- if ne .Values.podMetadata.source "none" }}true{{ end -}}
{{- end }}

{{/* A token on the nodes: for pod metadata and DRA objects alone. */}}
{{- define "gpugauge.nodeToken" -}}
{{- if or (include "gpugauge.podMetadata" .) .Values.dra.enabled }}true{{ end -}}
{{- end }}

{{- define "gpugauge.lease" -}}
{{- if gt (int .Values.watcher.replicas) 1 }}true{{ end -}}
{{- end }}

{{- define "gpugauge.webConfig" -}}
{{- if and (not (include "gpugauge.proxied" .)) (or .Values.tls.enabled .Values.basicAuth.enabled) }}true{{ end -}}
{{- end }}

{{- define "gpugauge.tlsSecret" -}}
{{- default (printf "%s-tls" (include "gpugauge.fullname" .)) .Values.tls.existingSecret -}}
{{- end }}

{{- define "gpugauge.serverName" -}}
{{- default (printf "%s.%s.svc" (include "gpugauge.fullname" .) (include "gpugauge.namespace" .)) .Values.tls.serverName -}}
{{- end }}

{{/* The ConfigMap with the counters; nothing where the default ones are read. */}}
{{- define "gpugauge.countersConfigMap" -}}
{{- $counters := .Values.counters -}}
{{- if $counters.existingConfigMap.name -}}
{{- $counters.existingConfigMap.name -}}
{{- else if or $counters.csv $counters.extra -}}
{{- include "gpugauge.fullname" . }}-counters
{{- end -}}
{{- end }}

{{/* Milliseconds of a duration such as 30s, 500ms or 1m. */}}
{{- define "gpugauge.milliseconds" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- if hasSuffix "ms" . }}{{ $number }}{{ else if hasSuffix "m" . }}{{ mul $number 60000 }}{{ else }}{{ mul $number 1000 }}{{ end -}}
{{- end }}

{{- define "gpugauge.scrapeTimeout" -}}
{{- $monitoring := .Values.monitoring -}}
{{- if $monitoring.scrapeTimeout -}}
{{- $monitoring.scrapeTimeout -}}
{{- else if lt (include "gpugauge.milliseconds" $monitoring.interval | int64) 10000 -}}
{{- $monitoring.interval -}}
{{- else -}}
10s
{{- end -}}
{{- end }}

{{- define "gpugauge.operatorMonitors" -}}
{{- if has .Values.monitoring.discovery (list "podMonitor" "serviceMonitor") }}true{{ end -}}
{{- end }}
