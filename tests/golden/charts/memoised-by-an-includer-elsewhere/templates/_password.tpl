{{- /* Makes the password once and keeps it in the values, whoever asks first. */ -}}
{{- define "password" -}}
{{- if not .Values.password }}{{ $_ := set .Values "password" (randAlphaNum 20) }}{{ end -}}
{{- .Values.password -}}
{{- end -}}

{{- /* Includes a file with a dot that is not the root, so its records have nowhere to go. */ -}}
{{- define "sum" -}}
{{- include (print .root.Template.BasePath "/secret.yaml") (dict "Values" .root.Values) | sha256sum -}}
{{- end -}}
