{{- define "app.password" -}}
{{- if not (hasKey .Values "generated") -}}
{{- $_ := set .Values "generated" (dict "password" (randAlphaNum 20)) -}}
{{- end -}}
{{- .Values.generated.password -}}
{{- end -}}
