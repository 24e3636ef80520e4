{{- /* Each evaluation makes an authority and a leaf of its own, and yet they are meant to be one. */ -}}
{{- define "certs" -}}
{{- $ca := genCA "helper-ca" 3650 -}}
{{- $cert := genSignedCert "helper.example" nil (list "helper.example") 365 $ca -}}
ca: {{ $ca.Cert | b64enc }}
crt: {{ $cert.Cert | b64enc }}
key: {{ $cert.Key | b64enc }}
{{- end -}}
{{- define "self" -}}
{{- $cert := genSelfSignedCert "selfhelper.example" nil (list "selfhelper.example") 365 -}}
{{- dict "crt" (b64enc $cert.Cert) "key" (b64enc $cert.Key) | toJson -}}
{{- end -}}
