{{- /*
capstan.object renders an object of the provider. It does at render time what clusterctl does at install time: it sets the
release's namespace wherever the target namespace belongs, and adds the labels by which clusterctl and "clusterctl move" find
the object. Then it applies the changes from the values. All changes are made to the parsed object, so they also cover text
that comes from the value of a variable.

Arguments, as a list: the chart's root context, the name of the template with the object's text, "namespaced" or "cluster", the name
by which the values know the object: its own if no variable is part of it, and the names of the variables in the text.
*/ -}}
{{- define "capstan.object" -}}
{{- $root := index . 0 -}}
{{- $document := dict -}}
{{- include "capstan.parse" (list $document (include (index . 1) $root)) -}}
{{- if gt (len .) 4 }}{{ include "capstan.checkValues" (list . $document) }}{{ end -}}
{{- $object := $document.object -}}
{{- $metadata := $object.metadata -}}
{{- if not (kindIs "map" $metadata) -}}
  {{- fail (printf "%s: the field metadata is not a map with the given variables" (include "capstan.called" (list . $object))) -}}
{{- end -}}
{{- $from := $metadata.namespace | default "" -}}
{{- if eq (index . 2) "namespaced" -}}
  {{- $_ := set $metadata "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- range $field := list "labels" "annotations" }}{{ include "capstan.checkTexts" (list $object $field) }}{{ end -}}
{{- include "capstan.withoutHelm" $metadata -}}
{{- include "capstan.setAll" (list $metadata "labels" $root.Values.commonLabels) -}}
{{- include "capstan.setAll" (list $metadata "annotations" $root.Values.commonAnnotations) -}}
{{- include "capstan.setAll" (list $metadata "labels" (dict "clusterctl.cluster.x-k8s.io" "" "cluster.x-k8s.io/provider" $root.Chart.Name)) -}}
{{- include "capstan.namespace" (list $object $from $root.Release.Namespace) -}}
{{- include "capstan.workload" (list $object $root.Values (index . 3)) -}}
{{- $yaml := toYaml $object -}}
{{- /* A parser would merge maps for this key, which the YAML library does not quote. JSON is YAML, too. */ -}}
{{- if regexMatch "(?m)^[ -]*<<:" $yaml }}{{ $yaml = toJson $object | replace "\ufeff" "\\ufeff" }}{{ end -}}
{{- /* Helm deletes these words from its output, once, which restores them. */ -}}
{{- $yaml = $yaml | replace "<no value>" "<no <no value>value>" -}}
{{- $yaml -}}
{{- /* Helm removes white space at the end of a manifest. Here it is part of a block scalar, so a comment ends it. */ -}}
{{- if ne $yaml (trim $yaml) }}{{ "\n# end" }}{{ end -}}
{{- end -}}

{{- define "capstan.called" -}}
{{- /* (list ARGUMENTS OBJECT): prints what messages call the object of capstan.object: its kind, namespace and name. */ -}}
  {{- $arguments := first . -}}
  {{- (last .).kind }} {{ if eq (index $arguments 2) "namespaced" }}{{ (index $arguments 0).Release.Namespace }}/{{ end }}{{ index $arguments 3 -}}
{{- end -}}

{{- define "capstan.parse" -}}
{{- /* (list DOCUMENT TEXT): sets DOCUMENT.object to the object of the text, unless the text is no valid YAML or ends early. */ -}}
  {{- $text := last . | trimPrefix "\n" -}}
  {{- /* No document of the components contains a separator, so a value does. clusterctl would apply what follows it as another object. */ -}}
  {{- $ends := or (hasPrefix "---" $text) (contains "\n---" $text) -}}
  {{- /* Nor does any contain, after one of YAML's line breaks, a separator, or the end of a document and more than comments after it.
  Parsers ignore what follows. */ -}}
  {{- $lines := regexReplaceAll "\r\n?|\u0085|\u2028|\u2029" $text "\n" -}}
  {{- if not (or $ends (regexMatch "(?m)^(?:---(?:\\s|$)|\\.\\.\\.\\s(?:\\s|#[^\\n]*\\n)*[^#\\s])" $lines)) -}}
    {{- /* clusterctl's reader ends all lines, the last one too, with a line feed. */ -}}
    {{- $text = $text | trimPrefix "\ufeff" | replace "\r\n" "\n" -}}
    {{- if not (hasSuffix "\n" $text) }}{{ $text = printf "%s\n" $text }}{{ end -}}
    {{- /* The YAML library skips characters after some byte order marks, so it gets a placeholder instead of them. */ -}}
    {{- $object := fromYaml ($text | replace "\ufeff" "\ufdd0") -}}
    {{- if contains "\ufeff" $text }}{{ $object = $object | toJson | replace "\ufdd0" "\ufeff" | fromJson }}{{ end -}}
    {{- if ne (keys $object | join " ") "Error" }}{{ $_ := set (first .) "object" $object }}{{ end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.checkValues" -}}
{{- /* (list ARGUMENTS DOCUMENT): fails if values of variables change more of the object than the fields that contain them. It is compared
with the same document with a mark in place of each expression. Errors contain neither values nor what a parser quotes. */ -}}
  {{- $arguments := first . -}}
  {{- $values := (index $arguments 0).Values -}}
  {{- $variables := slice $arguments 4 -}}
  {{- $marks := dict -}}
  {{- range $variables }}{{ $_ := set $marks . (print "capstan0mark0" .) }}{{ end -}}
  {{- $marked := dict -}}
  {{- include "capstan.parse" (list $marked (include (index $arguments 1) (dict "Values" $values "Marks" $marks))) -}}
  {{- if include "capstan.differs" (list $marked.object (last .).object) -}}
    {{- $causes := list -}}
    {{- range $variable := $variables -}}
      {{- $alone := dict -}}
      {{- include "capstan.parse" (list $alone (include (index $arguments 1) (dict "Values" $values "Marks" (omit $marks $variable)))) -}}
      {{- if include "capstan.differs" (list $marked.object $alone.object) }}{{ $causes = append $causes $variable }}{{ end -}}
    {{- end -}}
    {{- $causes = $causes | default $variables -}}
    {{- $fix := "write it as YAML requires in this place: in quotes, or with its quotes escaped" -}}
    {{- range $causes -}}
      {{- $value := get $values.variables . | toString -}}
      {{- if regexMatch "^[^\r\n]*\n$" $value }}{{ $fix = "remove the line break at its end" }}
      {{- else if regexMatch "[\r\n]" $value }}{{ $fix = "write it on one line, as base64 -w0 does" }}{{ end -}}
    {{- end -}}
    {{- $subject := printf "the value of variable %s changes more than the field that contains it" (join ", " $causes) -}}
    {{- if gt (len $causes) 1 -}}
      {{- $subject = printf "the values of variables %s change more than the fields that contain them" (join ", " $causes) -}}
    {{- end -}}
    {{- fail (printf "%s: %s; %s" (include "capstan.called" (list $arguments $marked.object)) $subject $fix) -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.differs" -}}
{{- /* (list MARKED OBJECT): prints "true" if OBJECT differs from MARKED elsewhere than in keys and values with marks. A key with a mark may
have become any other key, but none that the map has anyway. */ -}}
  {{- $marked := first . -}}
  {{- $object := last . -}}
  {{- $differs := false -}}
  {{- if or (deepEqual $marked $object) (and (kindIs "string" $marked) (contains "capstan0mark0" $marked)) -}}
  {{- else if and (kindIs "map" $marked) (kindIs "map" $object) -}}
    {{- $expected := list -}}
    {{- $found := list -}}
    {{- range $key, $value := $marked -}}
      {{- if contains "capstan0mark0" $key }}{{ $expected = append $expected $value }}
      {{- else if not (hasKey $object $key) }}{{ $differs = true }}
      {{- else if include "capstan.differs" (list $value (get $object $key)) }}{{ $differs = true }}{{ end -}}
    {{- end -}}
    {{- range $key, $value := $object }}{{ if not (hasKey $marked $key) }}{{ $found = append $found $value }}{{ end }}{{ end -}}
    {{- if ne (len $expected) (len $found) }}{{ $differs = true }}{{ end -}}
    {{- range $value := $expected -}}
      {{- $matches := false -}}
      {{- range $found }}{{ if not (include "capstan.differs" (list $value .)) }}{{ $matches = true }}{{ end }}{{ end -}}
      {{- if not $matches }}{{ $differs = true }}{{ end -}}
    {{- end -}}
    {{- range $value := $found -}}
      {{- $matches := false -}}
      {{- range $expected }}{{ if not (include "capstan.differs" (list . $value)) }}{{ $matches = true }}{{ end }}{{ end -}}
      {{- if not $matches }}{{ $differs = true }}{{ end -}}
    {{- end -}}
  {{- else if and (kindIs "slice" $marked) (kindIs "slice" $object) -}}
    {{- if ne (len $marked) (len $object) }}{{ $differs = true }}
    {{- else }}{{ range $i, $value := $marked }}{{ if include "capstan.differs" (list $value (index $object $i)) }}{{ $differs = true }}{{ end }}{{ end }}{{ end -}}
  {{- else }}{{ $differs = true }}
  {{- end -}}
  {{- if $differs }}true{{ end -}}
{{- end -}}

{{- define "capstan.checkTexts" -}}
{{- /* (list OBJECT FIELD): fails if a value in the labels or annotations is no text, and if the labels are no map. The chart replaces or
removes such values, which could hide what clusterctl or the API server would refuse. */ -}}
  {{- $object := first . -}}
  {{- $value := index $object.metadata (last .) -}}
  {{- $valid := or (ne (last .) "labels") (kindIs "map" $value) (kindIs "invalid" $value) -}}
  {{- if kindIs "map" $value }}{{ range $value }}{{ if not (or (kindIs "string" .) (kindIs "invalid" .)) }}{{ $valid = false }}{{ end }}{{ end }}{{ end -}}
  {{- if not $valid -}}
    {{- fail (printf "%s %s: the field metadata.%s is not a map of texts with the given variables; put the values in quotes" $object.kind (toString $object.metadata.name) (last .)) -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.withoutHelm" -}}
{{- /* METADATA: removes annotations by which the provider would give orders to Helm: hooks, objects to keep, owners. Users can give such
orders with .Values.commonAnnotations. */ -}}
  {{- $annotations := .annotations -}}
  {{- if kindIs "map" $annotations -}}
    {{- range $key := keys $annotations -}}
      {{- if regexMatch "^(meta\\.)?helm\\.sh/" $key }}{{ $_ := unset $annotations $key }}{{ end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.setAll" -}}
{{- /* (list OBJECT FIELD ENTRIES): sets entries of a field that is a map. If ENTRIES is null or empty, nothing changes. */ -}}
  {{- if last . -}}
    {{- $field := index (first .) (index . 1) | default dict -}}
    {{- range $key, $value := last . }}{{ $_ := set $field $key $value }}{{ end -}}
    {{- $_ := set (first .) (index . 1) $field -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.merge" -}}
{{- /* (list OBJECT CHANGES): merges changes into an object recursively. Null removes a field. */ -}}
  {{- $object := first . -}}
  {{- range $key, $value := last . -}}
    {{- if kindIs "invalid" $value -}}
      {{- $_ := unset $object $key -}}
    {{- else if and (kindIs "map" $value) (kindIs "map" (index $object $key)) -}}
      {{- include "capstan.merge" (list (index $object $key) $value) -}}
    {{- else -}}
      {{- $_ := set $object $key $value -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.namespace" -}}
{{- /* (list OBJECT FROM TO): changes an object's references to its own namespace, from the published namespace to the release's. */ -}}
{{- $object := index . 0 -}}
{{- $from := index . 1 -}}
{{- $to := index . 2 -}}
{{- if has $object.kind (list "ClusterRoleBinding" "RoleBinding") -}}
  {{- range $object.subjects -}}
    {{- if .namespace }}{{ $_ := set . "namespace" $to }}{{ end -}}
  {{- end -}}
{{- else if has $object.kind (list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration") -}}
  {{- with ($object.metadata.annotations | default dict) -}}
    {{- if hasKey . "cert-manager.io/inject-ca-from" -}}
      {{- $certificate := get . "cert-manager.io/inject-ca-from" | toString | splitList "/" -}}
      {{- if ne (len $certificate) 2 -}}
        {{- fail (printf "%s %s: the annotation cert-manager.io/inject-ca-from is not namespace/name, as it must be" $object.kind $object.metadata.name) -}}
      {{- end -}}
      {{- $_ := set $object.metadata.annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" $to (last $certificate)) -}}
    {{- end -}}
  {{- end -}}
  {{- range $object.webhooks -}}
    {{- with (.clientConfig | default dict).service }}{{ $_ := set . "namespace" $to }}{{ end -}}
  {{- end -}}
{{- else if and (eq $object.kind "Certificate") ($object.spec | default dict).dnsNames -}}
  {{- $names := list -}}
  {{- range $object.spec.dnsNames -}}
    {{- $parts := splitList (printf ".%s." $from) . -}}
    {{- if gt (len $parts) 1 -}}
      {{- $names = append $names (printf "%s.%s.%s" (first $parts) $to (join (printf ".%s." $from) (rest $parts))) -}}
    {{- else -}}
      {{- $names = append $names . -}}
    {{- end -}}
  {{- end -}}
  {{- $_ := set $object.spec "dnsNames" $names -}}
{{- end -}}
{{- end -}}
