{{/* Parts that the pods of both programs have. */}}

{{/* Annotations of the pods. In: root, values. */}}
{{- define "gpugauge.podAnnotations" -}}
{{- $found := dict -}}
{{- if eq .root.Values.monitoring.discovery "annotations" -}}
{{- $_ := set $found "prometheus.io/scrape" "true" -}}
{{- $_ := set $found "prometheus.io/path" "/metrics" -}}
{{- $_ := set $found "prometheus.io/port" (.values.port | int | toString) -}}
{{- $_ := set $found "prometheus.io/scheme" (ternary "https" "http" .root.Values.tls.enabled) -}}
{{- end -}}
{{- with merge $found .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gpugauge.webFlags" -}}
{{- if include "gpugauge.webConfig" . }}
- --web-config-file=/etc/gpugauge/web/web-config.yaml
{{- end }}
{{- end }}

{{/* Port and probes. In: root, values. */}}
{{- define "gpugauge.serving" -}}
{{- $proxied := include "gpugauge.proxied" .root -}}
{{- $scheme := ternary "HTTPS" "HTTP" (and .root.Values.tls.enabled (not $proxied)) -}}
{{- $port := ternary "health" "metrics" (not (empty $proxied)) -}}
ports:
  - name: {{ $port }}
    containerPort: {{ ternary .root.Values.auth.healthPort .values.port (not (empty $proxied)) | int }}
    protocol: TCP
livenessProbe:
  httpGet:
    path: /livez
    port: {{ $port }}
    {{- if eq $scheme "HTTPS" }}
    scheme: HTTPS
    {{- end }}
  initialDelaySeconds: 10
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ $port }}
    {{- if eq $scheme "HTTPS" }}
    scheme: HTTPS
    {{- end }}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "gpugauge.webMounts" -}}
{{- if include "gpugauge.webConfig" . }}
- name: web-config
  mountPath: /etc/gpugauge/web
  readOnly: true
{{- end }}
{{- if and .Values.tls.enabled (not (include "gpugauge.proxied" .)) }}
- name: tls
  mountPath: /etc/gpugauge/tls
  readOnly: true
{{- end }}
{{- end }}

{{/* Volumes for them. Files are readable by the group of the pod alone. */}}
{{- define "gpugauge.webVolumes" -}}
{{- if include "gpugauge.webConfig" . }}
- name: web-config
  secret:
    secretName: {{ include "gpugauge.fullname" . }}-web-config
    defaultMode: 0440
{{- end }}
{{- if .Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "gpugauge.tlsSecret" . }}
    defaultMode: 0440
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}
{{- end }}
