{{/* Names, labels and images. */}}

{{- define "gpugauge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "gpugauge.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "gpugauge.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "gpugauge.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{/* The name of a workload and of what belongs to it. In: root, component. */}}
{{- define "gpugauge.workload" -}}
{{- printf "%s-%s" (include "gpugauge.fullname" .root) .component -}}
{{- end }}

{{/* What selects the pods of a component. In: root, component. */}}
{{- define "gpugauge.selector" -}}
app.kubernetes.io/name: {{ include "gpugauge.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of an object. In: root, component. */}}
{{- define "gpugauge.labels" -}}
{{- $labels := fromYaml (include "gpugauge.selector" .) -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- toYaml (merge $labels .root.Values.commonLabels) -}}
{{- end }}

{{/* The head of an object in the namespace of the release. In: root, component, name. */}}
{{- define "gpugauge.metadata" -}}
name: {{ .name }}
namespace: {{ include "gpugauge.namespace" .root }}
labels:
  {{- include "gpugauge.labels" . | nindent 2 }}
{{- end }}

{{- define "gpugauge.image" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "image.repository is not set: no image is published. Build one from the Dockerfile and name where it is." -}}
{{- end -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end }}

{{/* The service account of a component. In: root, component, values. */}}
{{- define "gpugauge.serviceAccountName" -}}
{{- if .values.serviceAccount.create -}}
{{- default (include "gpugauge.workload" .) .values.serviceAccount.name -}}
{{- else -}}
{{- required (printf "%s.serviceAccount.name is needed where it is not created" .section) .values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "gpugauge.priorityClassName" -}}
{{- if .root.Values.priorityClass.create -}}
{{- include "gpugauge.fullname" .root -}}
{{- else -}}
{{- .values.priorityClassName -}}
{{- end -}}
{{- end }}
