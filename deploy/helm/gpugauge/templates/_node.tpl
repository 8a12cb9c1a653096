{{/* Parts of the node exporter's DaemonSet. */}}

{{- define "gpugauge.nodeEnvironment" -}}
{{- $v := .Values -}}
# Becomes the label `node` of every gpugauge_ series, and `hostname` of the DCGM-named ones.
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if or (eq $v.podMetadata.source "kubelet") (contains "$(NODE_IP)" $v.hostEngine.address) }}
- name: NODE_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- if include "gpugauge.podMetadata" . }}
- name: GPUGAUGE_POD_METADATA
  value: {{ $v.podMetadata.source }}
{{- end }}
{{- if $v.podMetadata.kubeletInsecureTLS }}
- name: GPUGAUGE_KUBELET_INSECURE_TLS
  value: "true"
{{- end }}
{{- with $v.podMetadata.labels }}
- name: GPUGAUGE_POD_LABELS
  value: {{ join "," . | quote }}
{{- end }}
{{- with $v.podMetadata.annotations }}
- name: GPUGAUGE_POD_ANNOTATIONS
  value: {{ join "," . | quote }}
{{- end }}
{{- if $v.podMetadata.uid }}
- name: DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID
  value: "true"
{{- end }}
{{- if $v.dra.enabled }}
- name: KUBERNETES_ENABLE_DRA
  value: "true"
{{- end }}
{{- if $v.processMetrics.enabled }}
- name: GPUGAUGE_PROCESS_METRICS
  value: "true"
{{- end }}
{{- if $v.auditLog.enabled }}
- name: GPUGAUGE_AUDIT_LOG
  value: /var/log/gpugauge/audit.jsonl
- name: GPUGAUGE_AUDIT_LOG_MAXSIZE
  value: {{ $v.auditLog.maxSizeMiB | int64 | quote }}
- name: GPUGAUGE_AUDIT_LOG_MAXBACKUP
  value: {{ $v.auditLog.maxFiles | int64 | quote }}
{{- with $v.auditLog.annotations }}
- name: GPUGAUGE_AUDIT_ANNOTATIONS
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}
{{- if $v.stateFile.enabled }}
- name: GPUGAUGE_STATE_FILE
  value: /var/lib/gpugauge/state.json
{{- end }}
{{- with $v.node.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gpugauge.nodeSecurityContext" -}}
{{- if include "gpugauge.root" . -}}
# The kubelet's socket accepts user 0 only (mode 0755, owner root); folders of the node belong to it too.
runAsUser: 0
runAsNonRoot: false
{{- else -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
{{- end }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
  {{- if include "gpugauge.sysAdmin" . }}
  # For profiling fields that an embedded engine reads on GPUs before Hopper.
  add: ["SYS_ADMIN"]
  {{- end }}
seccompProfile:
  type: RuntimeDefault
{{- with $.Values.openshift.seLinuxType }}
seLinuxOptions:
  type: {{ . }}
{{- end }}
{{- end }}

{{/* The labels by which nodes with GPUs are known. */}}
{{- define "gpugauge.nodeAffinity" -}}
requiredDuringSchedulingIgnoredDuringExecution:
  nodeSelectorTerms:
    # Nodes of the GPU Operator. It changes these labels while it upgrades the driver, because an exporter that stayed
    # would prevent the old driver from being unloaded; so in the other terms they must not exist.
    {{- range list "nvidia.com/gpu.deploy.dcgm-exporter" "nvidia.com/gpu.deploy.dcgm-exporter-dra" }}
    - matchExpressions:
        - {key: {{ . }}, operator: In, values: ["true"]}
    {{- end }}
    # GPU feature discovery, node feature discovery, and the labels of managed clusters.
    {{- range list
        "{key: nvidia.com/gpu.present, operator: In, values: ['true']}"
        "{key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ['true']}"
        "{key: feature.node.kubernetes.io/pci-0302_10de.present, operator: In, values: ['true']}"
        "{key: feature.node.kubernetes.io/pci-0300_10de.present, operator: In, values: ['true']}"
        "{key: cloud.google.com/gke-accelerator, operator: Exists}"
        "{key: k8s.amazonaws.com/accelerator, operator: Exists}"
        "{key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: In, values: [nvidia]}"
        "{key: kubernetes.azure.com/accelerator, operator: In, values: [nvidia]}" }}
    - matchExpressions:
        - {{ . }}
        - {key: nvidia.com/gpu.deploy.dcgm-exporter, operator: DoesNotExist}
        - {key: nvidia.com/gpu.deploy.dcgm-exporter-dra, operator: DoesNotExist}
    {{- end }}
{{- end }}
