{{- define "db.password" -}}
{{- default (randAlphaNum 16) .Values.password -}}
{{- end -}}
