{{- /* Makes the password once and keeps it in the values, whoever asks first. */ -}}
{{- define "password" -}}
{{- if not .Values.password }}{{ $_ := set .Values "password" (randAlphaNum 20) }}{{ end -}}
{{- .Values.password -}}
{{- end -}}
