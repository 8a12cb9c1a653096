{{/* Combinations of values that cannot work end with one message that names them. */}}

{{- define "gpugauge.check" -}}
{{- include "gpugauge.checkSource" . -}}
{{- include "gpugauge.checkNode" . -}}
{{- include "gpugauge.checkAccess" . -}}
{{- include "gpugauge.checkMonitoring" . -}}
{{- include "gpugauge.checkReport" . -}}
{{- include "gpugauge.checkAuth" . -}}
{{- end }}

{{- define "gpugauge.checkSource" -}}
{{- $v := .Values -}}
{{- if and $v.hostEngine.address (has $v.source (list "nvml" "simulated")) -}}
{{- fail (printf "hostEngine.address is set, and source: %s does not read a host engine" $v.source) -}}
{{- end -}}
{{- if regexMatch "^(tcp://)?(localhost|127\\.|\\[::1\\])" $v.hostEngine.address -}}
{{- fail (printf "hostEngine.address: %s is the pod itself. Name the node, $(NODE_IP):5555, or a socket, unix:///FOLDER/SOCKET" $v.hostEngine.address) -}}
{{- end -}}
{{- if and $v.counters.existingConfigMap.name (or $v.counters.csv $v.counters.extra) -}}
{{- fail "counters.existingConfigMap.name is in place of counters.csv and counters.extra: set one" -}}
{{- end -}}
{{- if and $v.counters.csv $v.counters.extra -}}
{{- fail "counters.extra adds to the default counters, which counters.csv replaces: set one" -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.checkNode" -}}
{{- $v := .Values -}}
{{- range $name, $on := dict "podMetadata.source" (include "gpugauge.podMetadata" .) "dra.enabled" $v.dra.enabled "auditLog.enabled" $v.auditLog.enabled "processMetrics.enabled" $v.processMetrics.enabled -}}
{{- if and $on (not $v.attribution.enabled) -}}
{{- fail (printf "%s needs attribution.enabled=true" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $on := dict "podMetadata.source" (include "gpugauge.podMetadata" .) "dra.enabled" $v.dra.enabled "auditLog.enabled" $v.auditLog.enabled "processMetrics.enabled" $v.processMetrics.enabled "stateFile.enabled" $v.stateFile.enabled "hostEngine.address with unix://" (include "gpugauge.hostEngineSocket" .) -}}
{{- if and $on $v.restricted -}}
{{- fail (printf "%s needs what restricted=true leaves out: a folder of the node, its processes, or attribution" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (or $v.podMetadata.labels $v.podMetadata.annotations $v.podMetadata.uid $v.auditLog.annotations) (not (include "gpugauge.podMetadata" .)) -}}
{{- fail "podMetadata.labels, .annotations, .uid and auditLog.annotations need podMetadata.source: api or kubelet" -}}
{{- end -}}
{{- if and $v.dra.adminClaim.enabled $v.node.runtimeClassName -}}
{{- fail "dra.adminClaim.enabled is in place of node.runtimeClassName: set one" -}}
{{- end -}}
{{- if and $v.node.nodeSelection.enabled (dig "nodeAffinity" "" $v.node.affinity) -}}
{{- fail "node.affinity.nodeAffinity is in place of node.nodeSelection: set nodeSelection.enabled=false, and keep a rule that leaves nodes whose driver is upgraded" -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.checkAccess" -}}
{{- $v := .Values -}}
{{- if $v.tls.enabled -}}
{{- if eq (empty $v.tls.existingSecret) (not $v.tls.certManager.enabled) -}}
{{- fail "tls.enabled needs one of tls.existingSecret and tls.certManager.enabled=true" -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled (not $v.tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled needs tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- else if or $v.tls.existingSecret $v.tls.certManager.enabled -}}
{{- fail "tls.existingSecret and tls.certManager need tls.enabled=true" -}}
{{- end -}}
{{- if $v.basicAuth.enabled -}}
{{- if not (and $v.basicAuth.username $v.basicAuth.passwordHash) -}}
{{- fail "basicAuth.enabled needs basicAuth.username and basicAuth.passwordHash" -}}
{{- end -}}
{{- if and (include "gpugauge.operatorMonitors" .) (not $v.basicAuth.existingSecret) -}}
{{- fail "basicAuth.enabled needs basicAuth.existingSecret, from which Prometheus takes user and password" -}}
{{- end -}}
{{- else if or $v.basicAuth.passwordHash $v.basicAuth.existingSecret -}}
{{- fail "basicAuth.passwordHash and basicAuth.existingSecret need basicAuth.enabled=true" -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.checkMonitoring" -}}
{{- $v := .Values -}}
{{- if gt (include "gpugauge.milliseconds" (include "gpugauge.scrapeTimeout" .) | int64) (include "gpugauge.milliseconds" $v.monitoring.interval | int64) -}}
{{- fail (printf "monitoring.scrapeTimeout: %s is longer than monitoring.interval: %s" $v.monitoring.scrapeTimeout $v.monitoring.interval) -}}
{{- end -}}
{{- if not (has $v.monitoring.discovery (list "annotations" "none")) -}}
{{- range $name, $annotations := dict "node.podAnnotations" $v.node.podAnnotations "watcher.podAnnotations" $v.watcher.podAnnotations "service.annotations" $v.service.annotations -}}
{{- if hasKey $annotations "prometheus.io/scrape" -}}
{{- fail (printf "%s has prometheus.io/scrape beside monitoring.discovery: %s, so each pod would be scraped twice" $name $v.monitoring.discovery) -}}
{{- end -}}
{{- end -}}
{{- else if and (eq $v.monitoring.discovery "annotations") (hasKey $v.service.annotations "prometheus.io/scrape") -}}
{{- fail "service.annotations has prometheus.io/scrape beside monitoring.discovery: annotations, so each pod would be scraped twice" -}}
{{- end -}}
{{- if and $v.rules.adapters.kubeStateMetrics $v.watcher.enabled -}}
{{- fail "rules.adapters.kubeStateMetrics stands in for the watcher: set watcher.enabled=false, or leave the adapter out" -}}
{{- end -}}
{{- if and $v.dashboards.grafanaOperator.enabled (not $v.dashboards.enabled) -}}
{{- fail "dashboards.grafanaOperator.enabled needs dashboards.enabled=true: its resources name the ConfigMaps" -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.checkReport" -}}
{{- $v := .Values.report -}}
{{- if and $v.enabled (not (and $v.prometheus.url $v.volume)) -}}
{{- fail "report.enabled needs report.prometheus.url and report.volume" -}}
{{- end -}}
{{- range $v.forms -}}
{{- if not (has . (list "html" "csv" "focus" "json")) -}}
{{- fail (printf "report.forms: %s is none of html, csv, focus, json" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.checkAuth" -}}
{{- $v := .Values -}}
{{- if include "gpugauge.proxied" . -}}
{{- if not $v.tls.enabled -}}
{{- fail "auth.mode: kubernetes needs tls.enabled=true: Prometheus sends its token" -}}
{{- end -}}
{{- if $v.basicAuth.enabled -}}
{{- fail "auth.mode: kubernetes is in place of basicAuth.enabled: set one" -}}
{{- end -}}
{{- if not $v.auth.proxy.image -}}
{{- fail "auth.mode: kubernetes needs auth.proxy.image: name your image of kube-rbac-proxy" -}}
{{- end -}}
{{- if empty $v.auth.prometheus.serviceAccount.name | ne (empty $v.auth.prometheus.serviceAccount.namespace) -}}
{{- fail "auth.prometheus.serviceAccount needs both name and namespace" -}}
{{- end -}}
{{- if and (eq $v.monitoring.discovery "podMonitor") (not $v.auth.prometheus.tokenSecret.name) -}}
{{- fail "auth.mode: kubernetes with monitoring.discovery: podMonitor needs auth.prometheus.tokenSecret.name, because a PodMonitor names no file; serviceMonitor needs none" -}}
{{- end -}}
{{- end -}}
{{- end }}
