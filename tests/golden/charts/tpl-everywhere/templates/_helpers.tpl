{{- define "app.token" }}{{ randAlphaNum 14 }}{{ end -}}
