{{/* kube-rbac-proxy before each program: it asks the API server whose token a request has, and whether that account may
get /metrics. The program listens on loopback, and for probes on a port that serves the health endpoints alone. */}}

{{- define "gpugauge.proxied" -}}
{{- if eq .Values.auth.mode "kubernetes" }}true{{ end -}}
{{- end }}

{{/* Where a program listens. In: root, values. */}}
{{- define "gpugauge.listenFlags" -}}
{{- if include "gpugauge.proxied" .root -}}
- --address=127.0.0.1:{{ int .root.Values.auth.programPort }}
- --health-address=:{{ int .root.Values.auth.healthPort }}
{{- else -}}
- --address=:{{ int .values.port }}
{{- end }}
{{- end }}

{{/* The container. In: root, values. */}}
{{- define "gpugauge.authProxy" -}}
{{- if include "gpugauge.proxied" .root }}
{{- $auth := .root.Values.auth }}
- name: auth-proxy
  image: {{ $auth.proxy.image | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --secure-listen-address=:{{ int .values.port }}
    - --upstream=http://127.0.0.1:{{ int $auth.programPort }}/
    - --allow-paths=/metrics
    - --tls-cert-file=/etc/gpugauge/tls/tls.crt
    - --tls-private-key-file=/etc/gpugauge/tls/tls.key
  ports:
    - name: metrics
      containerPort: {{ int .values.port }}
      protocol: TCP
  resources:
    {{- toYaml $auth.proxy.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: ["ALL"]
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: tls
      mountPath: /etc/gpugauge/tls
      readOnly: true
    # The token is mounted here alone: the program beside it gets none from it.
    - name: auth-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}
{{- end }}

{{- define "gpugauge.authVolumes" -}}
{{- if include "gpugauge.proxied" . }}
- name: auth-token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
{{- end }}
