{{- /*
The templates that rewritten charts call. Nothing here prints but what it stands for.

A frame is a dict: s the state shared by all frames of a file, r where typed results are left for
`get $becalm.r`, p the path of sites that leads here (unique in a render), n the same path in names
that a person would use, dot the dot of the named template.
The shared state: o the key of the file and the path that begin the frame, m the mode (survey: answer
unknown draws with a provisional value and record them; replay: an unknown draw is a request, made
through `fail`), l how a lookup is answered and q what was looked up (see lookup.tpl), t the settled values of the
file, c how often each path was taken, e the records, k the marker of records and requests, names the framed named
templates, salt what makes provisional values others, all whether records are printed where nothing is unknown, w what
makes a text worth rewriting, y the pinned texts of the file by the paths of what returns them: v the text, and g the
digest of the one that it takes the place of.
A settled entry holds v the value, and g where it depends on more than the arguments: the digest of the
texts that were given (passwords, keys, issuers).
*/ -}}

{{- define "becalm.root" -}}
{{- $f := index . 0 -}}
{{- $dot := index . 1 -}}
{{- $s := include "becalm.setup" nil | fromJson -}}
{{- $own := index . 3 -}}
{{- $name := $own -}}
{{- if kindIs "map" $dot -}}
{{- $t := index $dot "Template" -}}
{{- if kindIs "map" $t -}}
{{- $own = printf "%v/%s" (index $t "BasePath") $own -}}
{{- $name = index $t "Name" -}}
{{- end -}}
{{- end -}}
{{- $_ := set $s "t" (get (include (print "becalm.table:" (index . 2)) nil | fromJson) $own | default dict) -}}
{{- $_ := set $s "y" (get $s.t "=" | default dict) -}}
{{- $_ := set $s "o" (list (index . 2) $own) -}}
{{- $_ := set $s "c" dict -}}
{{- $_ := set $s "e" dict -}}
{{- $_ := set $s "q" dict -}}
{{- $_ := set $s "included" (ne $own $name) -}}
{{- $_ := set $f "s" $s -}}
{{- $_ := set $f "r" dict -}}
{{- $_ := set $f "p" $own -}}
{{- $_ := set $f "n" $own -}}
{{- end -}}

{{- define "becalm.flush" -}}
{{- $f := index . 0 -}}
{{- $dot := index . 1 -}}
{{- $s := $f.s -}}
{{- include "becalm.looked" (list $s $dot) -}}
{{- if ne $s.m "replay" -}}
{{- if and (or $s.unsettled $s.all) $s.e -}}
{{- if $s.included -}}
{{- /* What an included file prints becomes part of another, so the root map carries its records to whoever ends next. */ -}}
{{- if kindIs "map" $dot }}{{ $_ := set $dot "becalm.included" (set (get $dot "becalm.included" | default dict) $f.p $s) }}{{ end -}}
{{- else if hasSuffix "NOTES.txt" $f.p -}}
{{- $_ := set $dot "becalm" $s -}}
{{- else -}}
{{- include "becalm.records" $s -}}
{{- end -}}
{{- end -}}
{{- if not (or $s.included (hasSuffix "NOTES.txt" $f.p)) }}{{ include "becalm.carried" $dot }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "becalm.carried" -}}
{{- if kindIs "map" . -}}
{{- range $_, $s := get . "becalm.included" | default dict }}{{ include "becalm.records" $s }}{{ end -}}
{{- $_ := unset . "becalm.included" -}}
{{- end -}}
{{- end -}}

{{- define "becalm.records" }}
---
apiVersion: becalm.dev/v1
kind: Survey
metadata:
  name: {{ .k }}
records: {{ .e | toJson | b64enc }}
{{ end -}}

{{- define "becalm.notes" -}}
{{- if hasKey . "becalm" -}}
{{- $s := get . "becalm" -}}
{{- $_ := unset . "becalm" -}}
{{- include "becalm.records" $s -}}
{{- end -}}
{{- include "becalm.carried" . -}}
{{- end -}}

{{- define "becalm.orphan" -}}
{{- $f := index . 0 -}}
{{- $name := index . 2 -}}
{{- $path := printf "define/%s%s" $name (include "becalm.scalars" (index . 1)) -}}
{{- include "becalm.root" (list $f (index . 1) "orphan" $path) -}}
{{- /* No file prints its records, so that each of its draws is a request. */ -}}
{{- $_ := set $f.s "m" "replay" -}}
{{- $_ := set $f "dot" (index . 1) -}}
{{- include (print "becalm:" $name) $f -}}
{{- end -}}

{{- define "becalm.key" -}}
{{- $f := index . 0 -}}
{{- $k := printf "%s/%s" $f.p (index . 1) -}}
{{- $n := int (get $f.s.c $k | default 0) -}}
{{- $_ := set $f.s.c $k (add1 $n) -}}
{{- if $n }}{{ $k = printf "%s#%d" $k $n }}{{ end -}}
{{- $k -}}
{{- end -}}

{{- define "becalm.record" -}}
{{- $_ := set (index . 0).e (printf "%d" (len (index . 0).e)) (rest .) -}}
{{- end -}}

{{- define "becalm.fail" -}}
{{- $s := index . 0 -}}
{{- fail (printf "%s:%s:%s" $s.k (rest . | toJson | b64enc) $s.k) -}}
{{- end -}}

{{- define "becalm.draw" -}}
{{- $f := index . 0 -}}
{{- $s := $f.s -}}
{{- $fn := index . 3 -}}
{{- $a := slice . 4 -}}
{{- $k := include "becalm.key" (list $f (index . 1)) -}}
{{- $n := printf "%s/%s" $f.n (index . 1) -}}
{{- $_ := set $f.r "g" list -}}
{{- $d := include (print "becalm.arguments." $fn) (list $s (index . 2) $a $f.r) -}}
{{- $g := $f.r.g -}}
{{- $e := get (get $s.t $k | default dict) $d -}}
{{- $known := kindIs "map" $e -}}
{{- if $known }}{{ if hasKey $e "g" }}{{ $known = eq $e.g (include "becalm.digest" $g) }}{{ end }}{{ end -}}
{{- if $known -}}
{{- include (print "becalm.settled." $fn) (list $f.r $e $a) -}}
{{- else if eq $s.m "replay" -}}
{{- include "becalm.fail" (list $s "draw" (index $s.o 0) (index $s.o 1) $k $n (index . 2) $fn $d (include "becalm.encoded" $g | fromJsonArray)) -}}
{{- else -}}
{{- $_ := set $s "unsettled" true -}}
{{- include (print "becalm.provisional." $fn) (list $f.r (printf "%s %s%s" $k $d $s.salt) $a) -}}
{{- end -}}
{{- if ne $s.m "replay" -}}
{{- $v := $f.r.v -}}
{{- $x := list -}}
{{- if typeIs "sprig.certificate" $v -}}
{{- $x = list $v.Cert -}}
{{- if not (hasSuffix "WithKey" $fn) }}{{ $x = append $x $v.Key }}{{ end -}}
{{- else -}}
{{- $x = list (toString $v) -}}
{{- end -}}
{{- include "becalm.record" (list $s "draw" (index $s.o 0) (index $s.o 1) $k $n (index . 2) $fn $d (include "becalm.encoded" $g | fromJsonArray) $x $known) -}}
{{- end -}}
v
{{- end -}}

{{- define "becalm.digest" -}}
{{- $t := "" -}}
{{- range . }}{{ $t = print $t (printf "%d:%s" (len .) .) }}{{ end -}}
{{- sha256sum $t -}}
{{- end -}}

{{- define "becalm.encoded" -}}
{{- /* A list of texts in base64, as JSON, which could not carry all bytes. */ -}}
{{- $o := list -}}
{{- range . }}{{ $o = append $o (b64enc .) }}{{ end -}}
{{- toJson $o -}}
{{- end -}}

{{- define "becalm.pinned" -}}
{{- /* [state, path, text]: the text, or the one that is pinned in its place. */ -}}
{{- $s := index . 0 -}}
{{- $e := get $s.y (index . 1) -}}
{{- if not (kindIs "map" $e) -}}
{{- index . 2 -}}
{{- else if eq $e.g (sha256sum (index . 2)) -}}
{{- $e.v -}}
{{- else if eq $s.m "replay" -}}
{{- include "becalm.fail" (list $s "pin" (index $s.o 0) (index $s.o 1) (index . 1)) -}}
{{- else -}}
{{- index . 2 -}}
{{- end -}}
{{- end -}}

{{- define "becalm.closed" -}}
{{- /* The same, and a record of both. */ -}}
{{- $s := index . 0 -}}
{{- $v := include "becalm.pinned" . -}}
{{- if ne $s.m "replay" }}{{ include "becalm.record" (list $s "close" $v (index . 2)) }}{{ end -}}
{{- $v -}}
{{- end -}}

{{- define "becalm.open" -}}
{{- /* The path of the action, where somebody wants to know. */ -}}
{{- if or (ne .s.m "replay") .s.y -}}
{{- $k := include "becalm.key" (list . "=") -}}
{{- if ne .s.m "replay" }}{{ include "becalm.record" (list .s "open" "" "" (index .s.o 0) (index .s.o 1) $k) }}{{ end -}}
{{- $k -}}
{{- end -}}
{{- end -}}

{{- define "becalm.close" -}}
{{- $s := (index . 0).s -}}
{{- $v := index . 2 -}}
{{- if $s.y }}{{ $v = include "becalm.closed" (list $s (index . 1) (toString $v)) -}}
{{- else if ne $s.m "replay" }}{{ include "becalm.record" (list $s "close" (toString $v)) }}{{ end -}}
{{- $v -}}
{{- end -}}

{{- define "becalm.keep" -}}
{{- $s := (index . 0).s -}}
{{- $v := index . 2 -}}
{{- if and $s.y (kindIs "string" $v) }}{{ $v = include "becalm.closed" (list $s (index . 1) $v) -}}
{{- else if ne $s.m "replay" }}{{ include "becalm.record" (list $s "close" (kindIs "string" $v | ternary $v "")) }}{{ end -}}
{{- $_ := set (index . 0).r "v" $v -}}
v
{{- end -}}

{{- define "becalm.scalars" -}}
{{- $o := dict -}}
{{- if kindIs "map" . -}}
{{- range $k, $v := . -}}
{{- if has (kindOf $v) (list "string" "bool" "int" "int64" "float64") -}}
{{- $_ := set $o (toString $k) $v -}}
{{- end -}}
{{- end -}}
{{- else if has (kindOf .) (list "string" "bool" "int" "int64" "float64") -}}
{{- $_ := set $o "" . -}}
{{- end -}}
{{- toJson $o -}}
{{- end -}}

{{- define "becalm.call" -}}
{{- $f := index . 0 -}}
{{- $s := $f.s -}}
{{- $name := index . 2 -}}
{{- $dot := index . 3 -}}
{{- if hasKey $s.names $name -}}
{{- $k := include "becalm.key" (list $f (index . 1)) -}}
{{- $g := dict "s" $s "r" $f.r "p" $k "n" (printf "%s/%s" $f.n (index . 1)) "dot" $dot -}}
{{- if eq $s.m "replay" -}}
{{- if $s.y }}{{ include "becalm.pinned" (list $s $k (include (print "becalm:" $name) $g)) }}{{ else }}{{ include (print "becalm:" $name) $g }}{{ end -}}
{{- else -}}
{{- include "becalm.record" (list $s "open" $name (include "becalm.scalars" $dot) (index $s.o 0) (index $s.o 1) $k) -}}
{{- $t := include (print "becalm:" $name) $g -}}
{{- if $s.y }}{{ $t = include "becalm.closed" (list $s $k $t) }}{{ else }}{{ include "becalm.record" (list $s "close" $t) }}{{ end -}}
{{- $t -}}
{{- end -}}
{{- else -}}
{{- include $name $dot -}}
{{- end -}}
{{- end -}}

{{- define "becalm.tpl" -}}
{{- $f := index . 0 -}}
{{- $s := $f.s -}}
{{- $text := index . 2 -}}
{{- $dot := index . 3 -}}
{{- $known := false -}}
{{- if and (kindIs "string" $text) (contains "{{" (toString $text)) -}}
{{- if not (hasKey $s "x") }}{{ $_ := set $s "x" (include "becalm.texts" nil | fromJson) }}{{ end -}}
{{- $known = hasKey $s.x (sha256sum $text) -}}
{{- if and (not $known) (regexMatch $s.w $text) -}}
{{- if eq $s.m "replay" -}}
{{- include "becalm.fail" (list $s "text" $text) -}}
{{- end -}}
{{- $_ := set $s "unsettled" true -}}
{{- include "becalm.record" (list $s "text" $text) -}}
{{- end -}}
{{- end -}}
{{- if $known -}}
{{- $k := include "becalm.key" (list $f (index . 1)) -}}
{{- $g := dict "s" $s "r" $f.r "p" $k "n" (printf "%s/%s" $f.n (index . 1)) "dot" $dot -}}
{{- if eq $s.m "replay" -}}
{{- if $s.y }}{{ include "becalm.pinned" (list $s $k (tpl (get $s.x (sha256sum $text)) $g)) }}{{ else }}{{ tpl (get $s.x (sha256sum $text)) $g }}{{ end -}}
{{- else -}}
{{- include "becalm.record" (list $s "open" (print "tpl " (sha256sum $text)) (include "becalm.scalars" $dot) (index $s.o 0) (index $s.o 1) $k) -}}
{{- $t := tpl (get $s.x (sha256sum $text)) $g -}}
{{- if $s.y }}{{ $t = include "becalm.closed" (list $s $k $t) }}{{ else }}{{ include "becalm.record" (list $s "close" $t) }}{{ end -}}
{{- $t -}}
{{- end -}}
{{- else -}}
{{- tpl $text $dot -}}
{{- end -}}
{{- end -}}

{{- define "becalm.loop" -}}
{{- $f := index . 0 -}}
{{- $key := index . 2 -}}
{{- $dot := index . 3 -}}
{{- $n := toString $key -}}
{{- if kindIs "int" $key -}}
{{- if has (kindOf $dot) (list "string" "bool" "int" "int64" "float64") -}}
{{- $n = toString $dot -}}
{{- else if kindIs "map" $dot -}}
{{- range list "name" "key" "id" -}}
{{- $v := index $dot . -}}
{{- if and (kindIs "string" $v) $v }}{{ $n = $v }}{{ break }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $p := printf "%s/%s[%v]" $f.p (index . 1) $key -}}
{{- $_ := set $f.r "v" (dict "s" $f.s "r" $f.r "p" $p "n" (printf "%s/[%s]" $f.n $n)) -}}
v
{{- end -}}

{{- define "becalm.range" -}}
{{- $v := index . 1 -}}
{{- $_ := set (index . 0).r "v" (has (kindOf $v) (list "int" "int64" "float64") | ternary (until (int (has (kindOf $v) (list "int" "int64" "float64") | ternary $v 0))) $v) -}}
v
{{- end -}}

{{- define "becalm.keys" -}}
{{- $o := list -}}
{{- range $d := rest . -}}
{{- range $k, $v := $d }}{{ $o = append $o $k }}{{ end -}}
{{- end -}}
{{- $_ := set (index . 0).r "v" (toStrings $o) -}}
v
{{- end -}}

{{- define "becalm.values" -}}
{{- $o := list -}}
{{- range $k, $v := index . 1 }}{{ $o = append $o $v }}{{ end -}}
{{- $_ := set (index . 0).r "v" $o -}}
v
{{- end -}}

{{- define "becalm.is-time" -}}
{{- if or (typeIs "time.Time" .) (typeIs "*time.Time" .) (typeIs "int" .) (typeIs "int64" .) (typeIs "int32" .) }}yes{{ end -}}
{{- end -}}

{{- define "becalm.date" -}}
{{- $d := index . 1 -}}
{{- if include "becalm.is-time" $d }}{{ date (index . 0) $d }}{{ else }}{{ date (index . 0) (include "becalm.instant" nil | toDate "2006-01-02T15:04:05Z07:00") }}{{ end -}}
{{- end -}}

{{- define "becalm.dateInZone" -}}
{{- $d := index . 1 -}}
{{- if include "becalm.is-time" $d }}{{ dateInZone (index . 0) $d (index . 2) }}{{ else }}{{ dateInZone (index . 0) (include "becalm.instant" nil | toDate "2006-01-02T15:04:05Z07:00") (index . 2) }}{{ end -}}
{{- end -}}

{{- define "becalm.date_in_zone" }}{{ include "becalm.dateInZone" . }}{{ end -}}
{{- define "becalm.htmlDate" }}{{ include "becalm.date" (list "2006-01-02" (index . 0)) }}{{ end -}}
{{- define "becalm.htmlDateInZone" }}{{ include "becalm.dateInZone" (list "2006-01-02" (index . 0) (index . 1)) }}{{ end -}}

{{- define "becalm.since" -}}
{{- /* Seconds from a time to the instant, rounded half away from zero as time.Duration.Round. */ -}}
{{- $now := include "becalm.instant" nil | toDate "2006-01-02T15:04:05Z07:00" -}}
{{- $d := sub $now.Unix .Unix -}}
{{- $n := .Nanosecond -}}
{{- if or (gt $n 500000000) (and (eq $n 500000000) (le $d 0)) }}{{ $d = sub $d 1 }}{{ end -}}
{{- $d -}}
{{- end -}}

{{- define "becalm.ago" -}}
{{- $d := index . 0 -}}
{{- if typeIs "time.Time" $d -}}
{{- duration (include "becalm.since" $d) -}}
{{- else if or (typeIs "int" $d) (typeIs "int64" $d) -}}
{{- $now := include "becalm.instant" nil | toDate "2006-01-02T15:04:05Z07:00" -}}
{{- duration (toString (sub $now.Unix $d)) -}}
{{- else -}}
0s
{{- end -}}
{{- end -}}

{{- define "becalm.durationRound" -}}
{{- $d := index . 0 -}}
{{- if typeIs "time.Time" $d }}{{ durationRound (print (include "becalm.since" $d) "s") }}{{ else }}{{ durationRound $d }}{{ end -}}
{{- end -}}

{{- define "becalm.is" -}}
{{- /* [kind, value]: "yes" where a parameter of that kind takes the value. */ -}}
{{- $kind := index . 0 -}}
{{- $v := index . 1 -}}
{{- if eq $kind "certificate" -}}
{{- if typeIs "sprig.certificate" $v }}yes{{ end -}}
{{- else if eq $kind "strings" -}}
{{- $ok := or (kindIs "invalid" $v) (typeIs "[]interface {}" $v) -}}
{{- if $ok }}{{ range $v }}{{ if not (kindIs "string" .) }}{{ $ok = false }}{{ end }}{{ end }}{{ end -}}
{{- if $ok }}yes{{ end -}}
{{- else if kindIs $kind $v -}}
yes
{{- end -}}
{{- end -}}

{{- define "becalm.arguments" -}}
{{- /* [state, site id, arguments, results, kinds]: refuses arguments that the function does not take. */ -}}
{{- $s := index . 0 -}}
{{- $id := index . 1 -}}
{{- $a := index . 2 -}}
{{- $kinds := index . 4 -}}
{{- if ne (len $a) (len $kinds) }}{{ include "becalm.fail" (list $s "arguments" $id) }}{{ end -}}
{{- range $i, $v := $a -}}
{{- if not (include "becalm.is" (list (index $kinds $i) $v)) }}{{ include "becalm.fail" (list $s "arguments" $id) }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "becalm.count" -}}
{{- include "becalm.arguments" (append . (list "int")) -}}
{{- if gt (first (index . 2)) 1048576 }}{{ include "becalm.fail" (list (index . 0) "limit" (index . 1)) }}{{ end -}}
{{- toJson (index . 2) -}}
{{- end -}}

{{- define "becalm.arguments.randAlphaNum" }}{{ include "becalm.count" . }}{{ end -}}
{{- define "becalm.arguments.randAlpha" }}{{ include "becalm.count" . }}{{ end -}}
{{- define "becalm.arguments.randNumeric" }}{{ include "becalm.count" . }}{{ end -}}
{{- define "becalm.arguments.randAscii" }}{{ include "becalm.count" . }}{{ end -}}
{{- define "becalm.arguments.randBytes" -}}
{{- include "becalm.count" . -}}
{{- if lt (first (index . 2)) 0 }}{{ include "becalm.fail" (list (index . 0) "arguments" (index . 1)) }}{{ end -}}
{{- end -}}
{{- define "becalm.arguments.uuidv4" }}{{ include "becalm.arguments" (append . list) }}[]{{ end -}}
{{- define "becalm.arguments.randInt" -}}
{{- include "becalm.arguments" (append . (list "int" "int")) -}}
{{- if le (last (index . 2)) (first (index . 2)) }}{{ include "becalm.fail" (list (index . 0) "arguments" (index . 1)) }}{{ end -}}
{{- toJson (index . 2) -}}
{{- end -}}
{{- define "becalm.arguments.shuffle" -}}
{{- include "becalm.arguments" (append . (list "string")) -}}
{{- $_ := set (index . 3) "g" (index . 2) -}}
{{- $n := len (splitList "" (first (index . 2))) -}}
{{- if gt $n 8192 }}{{ include "becalm.fail" (list (index . 0) "limit" (index . 1)) }}{{ end -}}
{{- printf "[%d]" $n -}}
{{- end -}}

{{- define "becalm.arguments.genPrivateKey" -}}
{{- include "becalm.arguments" (append . (list "string")) -}}
{{- toJson (first (index . 2) | default "rsa" | list) -}}
{{- end -}}
{{- define "becalm.arguments.genCA" }}{{ include "becalm.arguments" (append . (list "string" "int")) }}{{ toJson (index . 2) }}{{ end -}}
{{- define "becalm.arguments.genCAWithKey" -}}
{{- include "becalm.arguments" (append . (list "string" "int" "string")) -}}
{{- $_ := set (index . 3) "g" (list (last (index . 2))) -}}
{{- toJson (initial (index . 2)) -}}
{{- end -}}
{{- define "becalm.names" -}}
{{- /* The common name, addresses, DNS names and days of a certificate. */ -}}
{{- toJson (list (index . 0) (index . 1 | default list) (index . 2 | default list) (index . 3)) -}}
{{- end -}}
{{- define "becalm.arguments.genSelfSignedCert" -}}
{{- include "becalm.arguments" (append . (list "string" "strings" "strings" "int")) -}}
{{- include "becalm.names" (index . 2) -}}
{{- end -}}
{{- define "becalm.arguments.genSelfSignedCertWithKey" -}}
{{- include "becalm.arguments" (append . (list "string" "strings" "strings" "int" "string")) -}}
{{- $_ := set (index . 3) "g" (list (last (index . 2))) -}}
{{- include "becalm.names" (index . 2) -}}
{{- end -}}
{{- define "becalm.arguments.genSignedCert" -}}
{{- include "becalm.arguments" (append . (list "string" "strings" "strings" "int" "certificate")) -}}
{{- $_ := set (index . 3) "g" (list (last (index . 2)).Cert (last (index . 2)).Key) -}}
{{- include "becalm.names" (index . 2) -}}
{{- end -}}
{{- define "becalm.arguments.genSignedCertWithKey" -}}
{{- include "becalm.arguments" (append . (list "string" "strings" "strings" "int" "certificate" "string")) -}}
{{- $ca := index (index . 2) 4 -}}
{{- $_ := set (index . 3) "g" (list $ca.Cert $ca.Key (last (index . 2))) -}}
{{- include "becalm.names" (index . 2) -}}
{{- end -}}
{{- define "becalm.arguments.htpasswd" -}}
{{- $a := index . 2 -}}
{{- include "becalm.arguments" (append . (gt (len $a) 2 | ternary (list "string" "string" "string") (list "string" "string"))) -}}
{{- $_ := set (index . 3) "g" (list (index $a 1)) -}}
{{- toJson (prepend (slice $a 2) (first $a)) -}}
{{- end -}}
{{- define "becalm.arguments.bcrypt" -}}
{{- include "becalm.arguments" (append . (list "string")) -}}
{{- $_ := set (index . 3) "g" (index . 2) -}}
[]
{{- end -}}
{{- define "becalm.arguments.encryptAES" -}}
{{- include "becalm.arguments" (append . (list "string" "string")) -}}
{{- $_ := set (index . 3) "g" (index . 2) -}}
[]
{{- end -}}

{{- define "becalm.settled" }}{{ $_ := set (index . 0) "v" (index . 1).v }}{{ end -}}
{{- define "becalm.settled.randAlphaNum" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randAlpha" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randNumeric" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randAscii" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randBytes" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.uuidv4" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.genPrivateKey" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.htpasswd" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.bcrypt" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.encryptAES" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.certificate" }}{{ $_ := set (index . 0) "v" (buildCustomCert (b64enc (index . 1).v.Cert) (b64enc (index . 1).v.Key)) }}{{ end -}}
{{- define "becalm.settled.genCA" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.genCAWithKey" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.genSelfSignedCert" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.genSelfSignedCertWithKey" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.genSignedCert" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.genSignedCertWithKey" }}{{ include "becalm.settled.certificate" . }}{{ end -}}
{{- define "becalm.settled.randInt" }}{{ $_ := set (index . 0) "v" (atoi (index . 1).v) }}{{ end -}}
{{- define "becalm.settled.shuffle" -}}
{{- $c := splitList "" (first (index . 2)) -}}
{{- $o := list -}}
{{- range (index . 1).v }}{{ $o = append $o (index $c (int .)) }}{{ end -}}
{{- $_ := set (index . 0) "v" (join "" $o) -}}
{{- end -}}

{{- define "becalm.hex" }}{{ sha256sum (printf "becalm provisional %s" .) }}{{ end -}}

{{- define "becalm.text" -}}
{{- /* [key, count, what to remove, characters per round at the least]: provisional characters. */ -}}
{{- $n := max 0 (index . 1) | int -}}
{{- $key := index . 0 -}}
{{- $remove := index . 2 -}}
{{- $o := "" -}}
{{- range $i := until (add1 (div $n (index . 3)) | int) -}}
{{- $h := include "becalm.hex" (printf "%s %d" $key $i) | upper | replace "0" "G" | replace "1" "H" | replace "8" "I" | replace "9" "J" -}}
{{- $o = print $o (regexReplaceAll $remove (b64enc (b32dec $h)) "") -}}
{{- end -}}
{{- substr 0 $n $o -}}
{{- end -}}

{{- define "becalm.number" -}}
{{- /* A provisional integer from 0 to 10^15 - 1, as digits. */ -}}
{{- $d := regexReplaceAll "[^1-9]" (print (include "becalm.hex" .) (include "becalm.hex" (print . "+"))) "" -}}
{{- trunc 15 $d -}}
{{- end -}}

{{- define "becalm.provisional.randAlphaNum" }}{{ $_ := set (index . 0) "v" (include "becalm.text" (list (index . 1) (first (index . 2)) "[^A-Za-z0-9]" 40)) }}{{ end -}}
{{- define "becalm.provisional.randAscii" }}{{ include "becalm.provisional.randAlphaNum" . }}{{ end -}}
{{- define "becalm.provisional.randAlpha" }}{{ $_ := set (index . 0) "v" (include "becalm.text" (list (index . 1) (first (index . 2)) "[^A-Za-z]" 30)) }}{{ end -}}
{{- define "becalm.provisional.randNumeric" -}}
{{- $n := max 0 (first (index . 2)) | int -}}
{{- $key := index . 1 -}}
{{- $o := "" -}}
{{- range $i := until (add1 (div $n 15) | int) }}{{ $o = print $o (include "becalm.number" (printf "%s %d" $key $i)) }}{{ end -}}
{{- $_ := set (index . 0) "v" (substr 0 $n $o) -}}
{{- end -}}
{{- define "becalm.provisional.randBytes" }}{{ $_ := set (index . 0) "v" (include "becalm.text" (list (index . 1) (first (index . 2)) "[^A-Za-z0-9]" 40) | b64enc) }}{{ end -}}
{{- define "becalm.provisional.randInt" -}}
{{- $low := first (index . 2) -}}
{{- $v := add $low (mod (include "becalm.number" (index . 1) | int64) (sub (last (index . 2)) $low)) -}}
{{- $_ := set (index . 0) "v" (int $v) -}}
{{- end -}}
{{- define "becalm.provisional.uuidv4" -}}
{{- $h := include "becalm.hex" (index . 1) -}}
{{- $_ := set (index . 0) "v" (printf "%s-%s-4%s-a%s-%s" (substr 0 8 $h) (substr 8 12 $h) (substr 12 15 $h) (substr 15 18 $h) (substr 18 30 $h)) -}}
{{- end -}}
{{- define "becalm.provisional.shuffle" }}{{ $_ := set (index . 0) "v" (splitList "" (first (index . 2)) | reverse | join "") }}{{ end -}}

{{- define "becalm.raw" -}}
{{- /* 20 provisional bytes, the first of them 0x40 to 0x47. */ -}}
{{- print "I" (include "becalm.hex" . | upper | replace "0" "G" | replace "1" "H" | replace "8" "I" | replace "9" "J" | substr 0 31) | b32dec -}}
{{- end -}}
{{- define "becalm.pem" -}}
{{- /* [label, DER] */ -}}
-----BEGIN {{ index . 0 }}-----
{{ regexReplaceAll "(.{64})" (index . 1 | b64enc) "${1}\n" }}
-----END {{ index . 0 }}-----
{{ end -}}
{{- define "becalm.provisional-key" -}}
{{- /* A P-256 key whose number is the provisional bytes. */ -}}
{{- include "becalm.pem" (list "EC PRIVATE KEY" (print (b64dec "MDECAQEEIEBAQEBAQEBAQEBAQA==") (include "becalm.raw" .) (b64dec "oAoGCCqGSM49AwEH"))) -}}
{{- end -}}
{{- define "becalm.provisional-certificate" -}}
{{- /* A certificate that parses, whose serial number is the provisional bytes. */ -}}
{{- $head := b64dec "MIIBUDCB96ADAgECAhQ=" -}}
{{- $tail := b64dec "MAoGCCqGSM49BAMCMB0xGzAZBgNVBAMMEmJlY2FsbSBwcm92aXNpb25hbDAgFw0wMDAxMDEwMDAwMDBaGA85OTk5MTIzMTIzNTk1OVowHTEbMBkGA1UEAwwSYmVjYWxtIHByb3Zpc2lvbmFsMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAECIu5/yKrKRp0yG/Gd7qJe6re43DMYSm4LRcLo/wmQVxELamnFgZ5VtkeqgK5OtQJSQ6HzV51jqajMaHet1uoRqMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAkSZ62i5gO0LtKVcDFyrRQ+2BfxiFMFcd5uaKH4ywcP4CIG4naogx+r8KAkv93XIo+VjQWnfAOhilGqzevJDtgYs3" -}}
{{- include "becalm.pem" (list "CERTIFICATE" (print $head (include "becalm.raw" .) $tail)) -}}
{{- end -}}
{{- define "becalm.provisional.certificate" -}}
{{- /* [results, key of the draw, private key] */ -}}
{{- $_ := set (index . 0) "v" (buildCustomCert (include "becalm.provisional-certificate" (index . 1) | b64enc) (index . 2 | b64enc)) -}}
{{- end -}}
{{- define "becalm.provisional.genPrivateKey" }}{{ $_ := set (index . 0) "v" (include "becalm.provisional-key" (index . 1)) }}{{ end -}}
{{- define "becalm.provisional.genCA" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (include "becalm.provisional-key" (index . 1))) }}{{ end -}}
{{- define "becalm.provisional.genCAWithKey" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (last (index . 2))) }}{{ end -}}
{{- define "becalm.provisional.genSelfSignedCert" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (include "becalm.provisional-key" (index . 1))) }}{{ end -}}
{{- define "becalm.provisional.genSelfSignedCertWithKey" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (last (index . 2))) }}{{ end -}}
{{- define "becalm.provisional.genSignedCert" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (include "becalm.provisional-key" (index . 1))) }}{{ end -}}
{{- define "becalm.provisional.genSignedCertWithKey" }}{{ include "becalm.provisional.certificate" (list (index . 0) (index . 1) (last (index . 2))) }}{{ end -}}
{{- define "becalm.provisional.hash" }}{{ print "$2a$10$" (include "becalm.text" (list . 53 "[^A-Za-z0-9]" 40)) }}{{ end -}}
{{- define "becalm.provisional.bcrypt" }}{{ $_ := set (index . 0) "v" (include "becalm.provisional.hash" (index . 1)) }}{{ end -}}
{{- define "becalm.provisional.htpasswd" -}}
{{- $user := first (index . 2) -}}
{{- $_ := set (index . 0) "v" (contains ":" $user | ternary (print "invalid username: " $user) (printf "%s:%s" $user (include "becalm.provisional.hash" (index . 1)))) -}}
{{- end -}}
{{- /* Helm's own, since a template may decrypt it again. */ -}}
{{- define "becalm.provisional.encryptAES" }}{{ $_ := set (index . 0) "v" (encryptAES (first (index . 2)) (last (index . 2))) }}{{ end -}}
