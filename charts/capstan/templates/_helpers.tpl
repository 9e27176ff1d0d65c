{{/* Name of namespaced objects: the release's name, plus the chart's name unless the release's name contains it. */}}
{{- define "capstan.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Name of cluster-scoped objects: unique per namespace and release. */}}
{{- define "capstan.clusterName" -}}
{{- if hasPrefix (include "capstan.fullname" .) .Release.Namespace -}}
{{- .Release.Namespace -}}
{{- else -}}
{{- printf "%s-%s" .Release.Namespace (include "capstan.fullname" .) -}}
{{- end -}}
{{- end }}

{{- define "capstan.serviceAccount" -}}
{{- default (ternary (include "capstan.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{/*
CEL expression for whether a request is from an operator: this one, by its name; any that impersonates an account, by what only operators may add to the
account; or another one. Those, and the components of Kubernetes, have a permission in the whole cluster, which no Role can grant.
*/}}
{{- define "capstan.isOperator" -}}
request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "capstan.serviceAccount" . }}' ||
authorizer.group('capstan.dev').resource('operatordata').check('update').allowed()
{{- end }}

{{/* Labels that select the pods. They must not change: selectors are immutable. */}}
{{- define "capstan.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "capstan.labels" -}}
{{ include "capstan.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "capstan.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end }}

{{/* Port number of an address such as ":8080". */}}
{{- define "capstan.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end }}

{{/* "true" if metrics are enabled, and otherwise empty. */}}
{{- define "capstan.metrics" -}}
{{- if ne (toString (index .Values.flags "metrics-bind-address")) "0" -}}true{{- end -}}
{{- end }}

{{/* "true" if metrics are enabled, by HTTPS and with authentication, and otherwise empty. */}}
{{- define "capstan.secureMetrics" -}}
{{- if index .Values.flags "metrics-secure" -}}{{- include "capstan.metrics" . -}}{{- end -}}
{{- end }}

{{/* GOMEMLIMIT: 80 % of limits.memory in bytes, because not all memory is Go's; empty without a limit. */}}
{{- define "capstan.goMemory" -}}
{{- $limit := toString (dig "limits" "memory" "" .Values.resources) -}}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" $limit -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := trimPrefix $number $limit -}}
{{- if and $number (hasKey $units $unit) -}}
{{- mulf $number (get $units $unit) 0.8 | floor | int64 -}}
{{- end -}}
{{- end }}

{{/* Name of the Secret with a provider's variables. */}}
{{- define "capstan.variablesSecret" -}}
{{- printf "%s-%s-variables" (lower .kind | trimSuffix "provider") .name -}}
{{- end }}
