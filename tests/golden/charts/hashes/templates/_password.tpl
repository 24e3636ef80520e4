{{- define "password" -}}{{ randAlphaNum 24 }}{{- end -}}
