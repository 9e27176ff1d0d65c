{{- /*
Named templates for the provider's variables. In the published components, variables are envsubst expressions such as
${NAME:=default}. These templates implement the functions of envsubst that Helm lacks, with the same results.
*/ -}}

{{- define "capstan.variables" -}}
{{- /* (list $ NAME...): prints .Values.variables as a JSON object of strings. Fails if a NAME is unset or null. */ -}}
  {{- $text := dict -}}
  {{- range $name, $value := (first .).Values.variables -}}
    {{- if kindIs "string" $value -}}
      {{- $_ := set $text $name (toString $value) -}}
    {{- else if not (kindIs "invalid" $value) -}}
      {{- $_ := set $text $name (toJson $value) -}}
    {{- end -}}
  {{- end -}}
  {{- $missing := list -}}
  {{- range rest . -}}
    {{- if not (hasKey $text .) -}}
      {{- $missing = append $missing . -}}
      {{- $_ := set $text . "" -}}
    {{- end -}}
  {{- end -}}
  {{- if $missing -}}
    {{- fail (printf "no value for required variables: %s; set each of them under \"variables\" in the chart's values" (join ", " $missing)) -}}
  {{- end -}}
  {{- $json := toJson $text -}}
  {{- range $name, $value := fromJson $json -}}
    {{- if ne $value (get $text $name) -}}
      {{- fail (printf "the value of variable %s is not valid UTF-8; encode it, for example as base64" $name) -}}
    {{- end -}}
  {{- end -}}
  {{- $json -}}
{{- end -}}

{{- define "capstan.lowerFirst" -}}
{{- /* TEXT: prints it with its first character in lower case: ${NAME,} */ -}}
  {{- $first := regexFind "^." . -}}
  {{- lower $first }}{{ trimPrefix $first . -}}
{{- end -}}

{{- define "capstan.upperFirst" -}}
{{- /* TEXT: prints it with its first character in upper case: ${NAME^} */ -}}
  {{- $first := regexFind "^." . -}}
  {{- upper $first }}{{ trimPrefix $first . -}}
{{- end -}}

{{- define "capstan.substr" -}}
{{- /* (list $var NAME START [LENGTH]), in bytes: ${NAME:START:LENGTH}. If an argument is not a number, the value does not change. */ -}}
  {{- $value := get (index . 0) (index . 1) -}}
  {{- $size := len $value -}}
  {{- $numbers := true -}}
  {{- range slice . 2 -}}
    {{- if ne (regexReplaceAll "^[+-]?0*([0-9]+)$" . "${1}") (atoi . | toString | trimPrefix "-") -}}
      {{- $numbers = false -}}
    {{- end -}}
  {{- end -}}
  {{- if not $numbers -}}
    {{- $value -}}
  {{- else -}}
    {{- $start := index . 2 | atoi -}}
    {{- if lt $start 0 -}}
      {{- $start = max 0 (add $size $start) | int -}}
    {{- end -}}
    {{- $end := $size -}}
    {{- if gt (len .) 3 -}}
      {{- $end = add $start (index . 3 | atoi) | int -}}
    {{- end -}}
    {{- if and (lt $end $size) (lt $end $start) -}}
      {{- fail (printf "${%s:%s}: the substring ends before it begins; use a length of 0 or more" (index . 1) (slice . 2 | join ":")) -}}
    {{- else if lt $start $size -}}
      {{- substr $start (min $end $size | int) $value -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.replaceFirst" -}}
{{- /* (list TEXT OLD NEW): ${NAME/OLD/NEW} */ -}}
  {{- $old := index . 1 -}}
  {{- $parts := splitn $old 2 (first .) -}}
  {{- if eq $old "" -}}
    {{- last . }}{{ first . -}}
  {{- else if gt (len $parts) 1 -}}
    {{- $parts._0 }}{{ last . }}{{ $parts._1 -}}
  {{- else -}}
    {{- first . -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.replacePrefix" -}}
{{- /* (list TEXT OLD NEW): ${NAME/#OLD/NEW}. Without NEW, nothing is replaced. */ -}}
  {{- $old := index . 1 -}}
  {{- if and (eq (len .) 3) (hasPrefix $old (first .)) -}}
    {{- last . }}{{ first . | trimPrefix $old -}}
  {{- else -}}
    {{- first . -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.replaceSuffix" -}}
{{- /* (list TEXT OLD NEW): ${NAME/%OLD/NEW}. Without NEW, nothing is replaced. */ -}}
  {{- $old := index . 1 -}}
  {{- if and (eq (len .) 3) (hasSuffix $old (first .)) -}}
    {{- first . | trimSuffix $old }}{{ last . -}}
  {{- else -}}
    {{- first . -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.trim" -}}
{{- /* (list OPERATOR TEXT PART...): prints TEXT without the shortest (#) or longest (##) prefix, or suffix (%, %%), that
the PARTs match, see capstan.matches. A suffix is a prefix of the reversed text. */ -}}
  {{- $operator := first . -}}
  {{- $parts := slice . 2 -}}
  {{- $text := index . 1 -}}
  {{- if hasPrefix "%" $operator -}}
    {{- $text = splitList "" $text | reverse | join "" -}}
  {{- end -}}
  {{- $cut := 0 -}}
  {{- range $length := untilStep (len $text) 0 -1 -}}
    {{- if include "capstan.matches" (concat (list (substr 0 $length $text)) $parts) -}}
      {{- $cut = $length -}}
      {{- if eq (len $operator) 2 }}{{ break }}{{ end -}}
    {{- end -}}
  {{- end -}}
  {{- $text = substr $cut (len $text) $text -}}
  {{- if hasPrefix "%" $operator -}}
    {{- /* JSON replaces incomplete characters with U+FFFD. */ -}}
    {{- $text = (dict "text" $text | toJson | fromJson).text -}}
    {{- $text = splitList "" $text | reverse | join "" -}}
  {{- end -}}
  {{- $text -}}
{{- end -}}

{{- define "capstan.matches" -}}
{{- /* (list TEXT PART...): prints "true" if the PARTs match all of TEXT. A PART is a regular expression or "*". Each part takes
the first match, without backtracking. */ -}}
  {{- $text := first . -}}
  {{- $parts := rest . -}}
  {{- $star := false -}}
  {{- $matches := true -}}
  {{- range $i, $part := $parts -}}
    {{- if eq $part "*" -}}
      {{- $star = true -}}
    {{- else -}}
      {{- $isLast := eq $i (sub (len $parts) 1 | int) -}}
      {{- $matches = false -}}
      {{- range $skip := until (ternary (len $text | add1 | int) 1 $star) -}}
        {{- $tail := substr $skip (len $text) $text -}}
        {{- $found := regexFind (printf "(?s)^%s" $part) $tail -}}
        {{- if and $found (or (not $isLast) (eq $found $tail)) -}}
          {{- $text = trimPrefix $found $tail -}}
          {{- $matches = true -}}
          {{- break -}}
        {{- end -}}
      {{- end -}}
      {{- $star = false -}}
      {{- if not $matches }}{{ break }}{{ end -}}
    {{- end -}}
  {{- end -}}
  {{- if $matches }}true{{ end -}}
{{- end -}}
