{{- /*
The templates that rewritten charts call. Nothing here prints but what it stands for.

A frame is a dict: s the state shared by all frames of a file, r where typed results are left for
`get $becalm.r`, p the path of sites that leads here (unique in a render), n the same path in names
that a person would use, dot the dot of the named template.
The shared state: o the key of the file and the path that begin the frame, m the mode (survey: answer
unknown draws with a provisional value and record them; replay: an unknown draw is a request, made
through `fail`), t the settled values of the file, c how often each path was taken, e the records, k the
marker of records and requests, names the framed named templates, refused the functions that have no
answer yet, w what makes a text worth rewriting.
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
{{- $_ := set $s "o" (list (index . 2) $own) -}}
{{- $_ := set $s "c" dict -}}
{{- $_ := set $s "e" dict -}}
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
{{- if and (ne $s.m "replay") (not $s.included) $s.unsettled $s.e -}}
{{- if hasSuffix "NOTES.txt" $f.p -}}
{{- $_ := set $dot "becalm" $s -}}
{{- else -}}
{{- include "becalm.records" $s -}}
{{- end -}}
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
{{- end -}}

{{- define "becalm.orphan" -}}
{{- $f := index . 0 -}}
{{- $name := index . 2 -}}
{{- $path := printf "define/%s%s" $name (include "becalm.scalars" (index . 1)) -}}
{{- include "becalm.root" (list $f (index . 1) "orphan" $path) -}}
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
{{- if has $fn $s.refused -}}
{{- include "becalm.fail" (list $s "refused" (index . 2)) -}}
{{- end -}}
{{- $d := include (print "becalm.arguments." $fn) (list $s (index . 2) $a) -}}
{{- $e := get (get $s.t $k | default dict) $d -}}
{{- $known := kindIs "map" $e -}}
{{- if $known -}}
{{- include (print "becalm.settled." $fn) (list $f.r $e $a) -}}
{{- else if eq $s.m "replay" -}}
{{- include "becalm.fail" (list $s "draw" (index $s.o 0) (index $s.o 1) $k $n (index . 2) $fn $d (toJson $a)) -}}
{{- else -}}
{{- $_ := set $s "unsettled" true -}}
{{- include (print "becalm.provisional." $fn) (list $f.r (printf "%s %s" $k $d) $a) -}}
{{- end -}}
{{- if ne $s.m "replay" -}}
{{- include "becalm.record" (list $s "draw" (index $s.o 0) (index $s.o 1) $k $n (index . 2) $fn $d (toJson $a) (toString $f.r.v) $known) -}}
{{- end -}}
v
{{- end -}}

{{- define "becalm.open" -}}
{{- if ne .s.m "replay" -}}
{{- include "becalm.record" (list .s "open" "" "") -}}
{{- end -}}
{{- end -}}

{{- define "becalm.close" -}}
{{- $v := index . 2 -}}
{{- if ne (index . 0).s.m "replay" -}}
{{- include "becalm.record" (list (index . 0).s "close" (toString $v)) -}}
{{- end -}}
{{- $v -}}
{{- end -}}

{{- define "becalm.keep" -}}
{{- $v := index . 2 -}}
{{- if ne (index . 0).s.m "replay" -}}
{{- include "becalm.record" (list (index . 0).s "close" (kindIs "string" $v | ternary $v "")) -}}
{{- end -}}
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
{{- include (print "becalm:" $name) $g -}}
{{- else -}}
{{- include "becalm.record" (list $s "open" $name (include "becalm.scalars" $dot)) -}}
{{- $t := include (print "becalm:" $name) $g -}}
{{- include "becalm.record" (list $s "close" $t) -}}
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
{{- tpl (get $s.x (sha256sum $text)) $g -}}
{{- else -}}
{{- include "becalm.record" (list $s "open" (print "tpl " (sha256sum $text)) (include "becalm.scalars" $dot)) -}}
{{- $t := tpl (get $s.x (sha256sum $text)) $g -}}
{{- include "becalm.record" (list $s "close" $t) -}}
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

{{- define "becalm.arguments" -}}
{{- /* [state, site id, arguments, kinds]: the arguments as text, once they are what the function takes. */ -}}
{{- $s := index . 0 -}}
{{- $id := index . 1 -}}
{{- $a := index . 2 -}}
{{- $kinds := index . 3 -}}
{{- if ne (len $a) (len $kinds) }}{{ include "becalm.fail" (list $s "arguments" $id) }}{{ end -}}
{{- range $i, $v := $a -}}
{{- if not (kindIs (index $kinds $i) $v) }}{{ include "becalm.fail" (list $s "arguments" $id) }}{{ end -}}
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
{{- $n := len (splitList "" (first (index . 2))) -}}
{{- if gt $n 8192 }}{{ include "becalm.fail" (list (index . 0) "limit" (index . 1)) }}{{ end -}}
{{- printf "[%d]" $n -}}
{{- end -}}

{{- define "becalm.settled" }}{{ $_ := set (index . 0) "v" (index . 1).v }}{{ end -}}
{{- define "becalm.settled.randAlphaNum" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randAlpha" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randNumeric" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randAscii" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.randBytes" }}{{ include "becalm.settled" . }}{{ end -}}
{{- define "becalm.settled.uuidv4" }}{{ include "becalm.settled" . }}{{ end -}}
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
