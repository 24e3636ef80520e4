{{- /* The authority, made once and kept on the root map, as JSON for whoever needs it. */ -}}
{{- define "ca" -}}
{{- if not (hasKey .Values "madeCa") }}{{ $_ := set .Values "madeCa" (genCA "apart-ca" 1825) }}{{ end -}}
{{- dict "cert" .Values.madeCa.Cert "key" .Values.madeCa.Key | toJson -}}
{{- end -}}
