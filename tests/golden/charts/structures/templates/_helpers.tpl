{{- define "app.defaults" -}}
user: app
password: {{ randAlphaNum 15 }}
nested: {token: {{ randAlphaNum 15 }}}
{{- end -}}
