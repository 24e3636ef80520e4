{{- define "lib.password" -}}
{{- $password := "" -}}
{{- $given := index (.context.Values.passwords | default dict) .key -}}
{{- if $given -}}
{{- $password = $given -}}
{{- else if .strong -}}
{{- $parts := list (randAlpha 2 | lower) (randAlpha 2 | upper) (randNumeric 2) "@" -}}
{{- $password = printf "%s%s" (join "" $parts) (randAlphaNum .length) | shuffle -}}
{{- else -}}
{{- $password = randAlphaNum .length -}}
{{- end -}}
{{- $password | b64enc | quote -}}
{{- end -}}
