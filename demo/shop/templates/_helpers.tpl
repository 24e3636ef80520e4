{{- define "shop.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "shop.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "shop.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "shop.selectorLabels" . }}
{{- end -}}

{{- define "shop.databaseHost" -}}
{{- printf "%s-database" (include "shop.fullname" .) -}}
{{- end -}}

{{/* The password from the values, or a new one. */}}
{{- define "shop.databasePassword" -}}
{{- if .Values.database.password -}}
{{- .Values.database.password -}}
{{- else -}}
{{- randAlphaNum 20 -}}
{{- end -}}
{{- end -}}

{{/* 64 hexadecimal digits, one call each. */}}
{{- define "shop.hexKey" -}}
{{- range until 64 -}}
{{- randInt 0 16 | printf "%x" -}}
{{- end -}}
{{- end -}}
