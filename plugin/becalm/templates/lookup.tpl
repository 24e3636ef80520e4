{{- /*
What stands for `lookup`: [frame, site, API version, kind, namespace, name], with typed results as draws have.

In the shared state l is what answers a lookup for which the runtime has no answer: stock (helm itself), or ask (an
empty map; in a replay it is a request), or demand (always a request, where a template cannot go on with nothing). q is what was looked up, by site and arguments.
*/ -}}

{{- define "becalm.lookup" -}}
{{- $f := index . 0 -}}
{{- $s := $f.s -}}
{{- $id := index . 1 -}}
{{- $a := slice . 2 -}}
{{- $known := false -}}
{{- if eq $s.l "stock" -}}
{{- $_ := set $f.r "v" (lookup (index $a 0) (index $a 1) (index $a 2) (index $a 3)) -}}
{{- else -}}
{{- $ok := eq (len $a) 4 -}}
{{- range $a }}{{ if not (kindIs "string" .) }}{{ $ok = false }}{{ end }}{{ end -}}
{{- if not $ok }}{{ include "becalm.fail" (list $s "lookup arguments" $id) }}{{ end -}}
{{- if not (hasKey $s "a") }}{{ $_ := set $s "a" (include "becalm.answers" nil | fromJson) }}{{ end -}}
{{- $k := include "becalm.digest" $a -}}
{{- $known = hasKey $s.a $k -}}
{{- if $known -}}
{{- include (print "becalm.answer:" $k) $f.r -}}
{{- else if or (eq $s.l "demand") (and (eq $s.l "ask") (eq $s.m "replay")) -}}
{{- include "becalm.fail" (list $s "lookup" (prepend $a $id)) -}}
{{- else -}}
{{- $_ := set $f.r "v" dict -}}
{{- end -}}
{{- end -}}
{{- if hasKey $s "q" }}{{ $_ := set $s.q (printf "%v %s" $id (include "becalm.digest" $a)) (prepend (append $a $known) $id) }}{{ end -}}
v
{{- end -}}

{{- define "becalm.looked" -}}
{{- /* [state, dot]: the root map of the chart carries what a file looked up to the file that tells it. */ -}}
{{- $s := index . 0 -}}
{{- $dot := index . 1 -}}
{{- if and $s.q (kindIs "map" $dot) -}}
{{- if kindIs "map" (index $dot "Subcharts") }}{{ $_ := set $dot "becalm.looked" (append (get $dot "becalm.looked" | default list) $s.q) }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "becalm.lookups" -}}
{{- /* In a file that helm renders last: what was looked up, as a hook, since hooks leave the manifests as they are. */ -}}
{{- $o := dict "q" list -}}
{{- include "becalm.gather" (list $o .) -}}
{{- if $o.q -}}
apiVersion: becalm.dev/v1
kind: Lookups
metadata:
  name: {{ (include "becalm.setup" nil | fromJson).k }}
  annotations:
    helm.sh/hook: post-install
records: {{ $o.q | toJson | b64enc }}
{{- end -}}
{{- end -}}

{{- define "becalm.gather" -}}
{{- $o := index . 0 -}}
{{- $dot := index . 1 -}}
{{- range get $dot "becalm.looked" | default list }}{{ $_ := set $o "q" (append $o.q .) }}{{ end -}}
{{- range $_, $sub := get $dot "Subcharts" | default dict }}{{ include "becalm.gather" (list $o $sub) }}{{ end -}}
{{- end -}}
