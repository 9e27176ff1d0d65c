{{- /*
capstan.object renders an object of the provider. It does at render time what clusterctl does at install time: it replaces the
expressions, sets the release's namespace wherever the target namespace belongs, and adds the labels by which clusterctl and
"clusterctl move" find the object. Then it applies the changes from the values. All changes are made to the parsed object, so
they also cover text that comes from the value of a variable.

Arguments, as a list: the chart's root context, and the object's entry in files/objects.json.
*/ -}}
{{- define "capstan.object" -}}
{{- $root := index . 0 -}}
{{- $entry := index . 1 -}}
{{- $text := $root.Files.Get $entry.file -}}
{{- $variables := $root.Values.variables | default dict -}}
{{- $document := dict -}}
{{- include "capstan.parse" (list $document (include "capstan.expand" (list $text $entry.expressions $variables))) -}}
{{- if $entry.expressions }}{{ include "capstan.checkValues" (list $root $entry $text $document) }}{{ end -}}
{{- $object := $document.object -}}
{{- $metadata := $object.metadata -}}
{{- if not (and (kindIs "string" $object.apiVersion) (kindIs "string" $object.kind) (kindIs "map" $metadata)) -}}
  {{- fail (printf "%s: apiVersion, kind or metadata have the wrong type with the given variables" $entry.name) -}}
{{- end -}}
{{- $from := $metadata.namespace | default "" -}}
{{- if not $entry.clusterScoped }}{{ $_ := set $metadata "namespace" $root.Release.Namespace }}{{ end -}}
{{- range $field := list "labels" "annotations" }}{{ include "capstan.checkTexts" (list $object $field) }}{{ end -}}
{{- include "capstan.withoutHelm" $metadata -}}
{{- include "capstan.withoutServerFields" $metadata -}}
{{- include "capstan.setAll" (list $metadata "labels" $root.Values.commonLabels) -}}
{{- include "capstan.setAll" (list $metadata "annotations" $root.Values.commonAnnotations) -}}
{{- include "capstan.setAll" (list $metadata "labels" (dict "clusterctl.cluster.x-k8s.io" "" "cluster.x-k8s.io/provider" $root.Chart.Name)) -}}
{{- include "capstan.namespace" (list $object $from $root.Release.Namespace) -}}
{{- include "capstan.shared" $object -}}
{{- include "capstan.workload" (list $object $root.Values $entry) -}}
{{- include "capstan.yaml" $object -}}
{{- if and (eq $object.kind "Deployment") (include "capstan.settings" (list $root.Values $entry) | fromJson).highAvailability (not $entry.hasBudget) }}
---
{{ include "capstan.yaml" (include "capstan.disruptionBudget" (list $root $object) | fromJson) -}}
{{- end -}}
{{- end -}}

{{- define "capstan.yaml" -}}
{{- /* OBJECT: prints it as YAML that is still the same after Helm has split and trimmed it. */ -}}
  {{- $yaml := toYaml . -}}
  {{- if contains "<no value>" $yaml -}}
    {{- fail (printf "%s %s: the value of a variable contains the words <no value>, which Helm removes; use others" .kind .metadata.name) -}}
  {{- end -}}
  {{- $yaml -}}
  {{- /* White space at the end is part of a block scalar, so a comment follows it. */ -}}
  {{- if ne $yaml (trim $yaml) }}{{ "\n# end" }}{{ end -}}
{{- end -}}

{{- define "capstan.called" -}}
{{- /* (list ROOT ENTRY OBJECT): prints what messages call an object: its kind, namespace and name. */ -}}
  {{- $entry := index . 1 -}}
  {{- (last .).kind }} {{ if not $entry.clusterScoped }}{{ (index . 0).Release.Namespace }}/{{ end }}{{ $entry.name -}}
{{- end -}}

{{- define "capstan.expand" -}}
{{- /* (list TEXT EXPRESSIONS VARIABLES): prints TEXT with the values of its expressions, and a dollar sign for $$. */ -}}
  {{- include "capstan.substitute" (append . (list "$$")) -}}
{{- end -}}

{{- define "capstan.substitute" -}}
{{- /* (list TEXT EXPRESSIONS VARIABLES ESCAPES): prints TEXT with the values of its expressions, in one pass: a value is text, and not read
again. EXPRESSIONS says what each one does, by how it is written. Each of ESCAPES becomes a dollar sign. */ -}}
  {{- $expressions := index . 1 | default dict -}}
  {{- $variables := index . 2 -}}
  {{- $forms := list -}}
  {{- /* The longest of those that begin alike is the first. */ -}}
  {{- range concat (last .) (keys $expressions | sortAlpha | reverse) }}{{ $forms = append $forms (regexQuoteMeta .) }}{{ end -}}
  {{- $form := join "|" $forms -}}
  {{- $found := regexFindAll $form (first .) -1 -}}
  {{- range $i, $text := regexSplit $form (first .) -1 -}}
    {{- with regexFind "\\$\\{.{0,60}" $text }}{{ fail (printf "files/objects.json does not list the expression at %q; build the chart again" .) }}{{ end -}}
    {{- $text -}}
    {{- if lt $i (len $found) -}}
      {{- $written := index $found $i -}}
      {{- if eq $written "$$" }}$
      {{- else }}{{ include "capstan.value" (list (index $expressions $written) $variables) }}{{ end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.value" -}}
{{- /* (list EXPRESSION VARIABLES): prints the value of an expression. */ -}}
  {{- $expression := first . -}}
  {{- $value := get (last .) $expression.name -}}
  {{- if kindIs "invalid" $value }}{{ $value = "" }}{{ else }}{{ $value = include "capstan.text" $value }}{{ end -}}
  {{- $prefix := $expression.prefix | default "" -}}
  {{- if and $prefix (hasPrefix $prefix $value) }}{{ $expression.replacement | default "" }}{{ trimPrefix $prefix $value }}
  {{- else if and (eq $value "") $expression.expressions -}}
    {{- include "capstan.substitute" (list $expression.default $expression.expressions (last .) list) -}}
  {{- else if eq $value "" }}{{ $expression.default | default "" }}
  {{- else }}{{ $value }}{{ end -}}
{{- end -}}

{{- define "capstan.parse" -}}
{{- /* (list DOCUMENT TEXT): sets DOCUMENT.object to the object of the text, unless the text is no valid YAML or ends early. */ -}}
  {{- $text := last . | replace "\r\n" "\n" -}}
  {{- /* No document has a separator, so a value does. clusterctl would apply what follows it as another object, which parsers ignore. */ -}}
  {{- if not (regexMatch "(?m)^(---|\\.\\.\\.)" (regexReplaceAll "\r|\u0085|\u2028|\u2029" $text "\n")) -}}
    {{- if not (hasSuffix "\n" $text) }}{{ $text = printf "%s\n" $text }}{{ end -}}
    {{- $object := fromYaml $text -}}
    {{- if ne (keys $object | join " ") "Error" }}{{ $_ := set (first .) "object" $object }}{{ end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.checkValues" -}}
{{- /* (list ROOT ENTRY TEXT DOCUMENT): fails if values of variables change more of the object than the fields that contain them. It is
compared with the same text with a mark in place of each expression. Errors contain neither values nor what a parser quotes. */ -}}
  {{- $entry := index . 1 -}}
  {{- $text := index . 2 -}}
  {{- $variables := (index . 0).Values.variables | default dict -}}
  {{- $marks := dict -}}
  {{- $derived := dict -}}
  {{- include "capstan.marks" (list $marks $derived $entry.expressions) -}}
  {{- $marked := dict -}}
  {{- include "capstan.parse" (list $marked (include "capstan.expand" (list $text $entry.expressions $marks))) -}}
  {{- if include "capstan.hasManyKeys" (list $marked.object false) -}}
    {{- fail (printf "%s: more than 4 keys of a map contain expressions, or one of them is below another one; write the others without" (include "capstan.called" (list (index . 0) $entry $marked.object))) -}}
  {{- end -}}
  {{- if include "capstan.differs" (list $marked.object (last .).object) -}}
    {{- $causes := list -}}
    {{- $names := keys $marks | sortAlpha -}}
    {{- /* Each variable alone, unless that takes long. If it is used in the default of others that have no value, they have none here either. */ -}}
    {{- $others := $marks -}}
    {{- range $variable := keys $derived -}}
      {{- if not (include "capstan.value" (list (dict "name" $variable) $variables)) }}{{ $others = omit $others $variable }}{{ end -}}
    {{- end -}}
    {{- range $variable := ternary $names list (le (len $names) 20) -}}
      {{- $alone := merge (dict $variable (get $variables $variable)) $others -}}
      {{- $document := dict -}}
      {{- include "capstan.parse" (list $document (include "capstan.expand" (list $text $entry.expressions $alone))) -}}
      {{- if include "capstan.differs" (list $marked.object $document.object) }}{{ $causes = append $causes $variable }}{{ end -}}
    {{- end -}}
    {{- $causes = $causes | default $names -}}
    {{- $fix := "write it as YAML requires in this place: in quotes, or with its quotes escaped" -}}
    {{- range $causes -}}
      {{- $value := get $variables . | toString -}}
      {{- if regexMatch "^[^\r\n]*\n$" $value }}{{ $fix = "remove the line break at its end" }}
      {{- else if regexMatch "[\r\n]" $value }}{{ $fix = "write it on one line, as base64 -w0 does" }}{{ end -}}
    {{- end -}}
    {{- $subject := printf "the value of variable %s changes more than the field that contains it" (join ", " $causes) -}}
    {{- if gt (len $causes) 20 -}}
      {{- $subject = "the values of its variables change more than the fields that contain them" -}}
    {{- else if gt (len $causes) 1 -}}
      {{- $subject = printf "the values of variables %s change more than the fields that contain them" (join ", " $causes) -}}
    {{- end -}}
    {{- fail (printf "%s: %s; %s" (include "capstan.called" (list (index . 0) $entry $marked.object)) $subject $fix) -}}
  {{- end -}}
  {{- if has (last .).object.kind (list "Deployment" "DaemonSet" "StatefulSet" "ReplicaSet" "Job" "CronJob" "Pod") -}}
    {{- $called := include "capstan.called" (list (index . 0) $entry (last .).object) -}}
    {{- include "capstan.checkContainers" (list $called $entry.expressions $marked.object (last .).object "") -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.checkContainers" -}}
{{- /* (list CALLED EXPRESSIONS MARKED OBJECT FIELD): fails if values of variables make something else than texts in the command, the arguments
and the environment of containers. The API server would refuse it without saying where the value comes from. */ -}}
  {{- $called := index . 0 -}}
  {{- $expressions := index . 1 -}}
  {{- $marked := index . 2 -}}
  {{- $object := index . 3 -}}
  {{- $field := index . 4 -}}
  {{- if deepEqual $marked $object -}}
  {{- else if kindIs "map" $marked -}}
    {{- range $key, $value := $marked -}}
      {{- if hasKey $object $key }}{{ include "capstan.checkContainers" (list $called $expressions $value (get $object $key) $key) }}{{ end -}}
    {{- end -}}
  {{- else if kindIs "slice" $marked -}}
    {{- range $i, $value := $marked }}{{ include "capstan.checkContainers" (list $called $expressions $value (index $object $i) $field) }}{{ end -}}
  {{- else if and (has $field (list "command" "args" "value")) (not (has (kindOf $object) (list "string" "invalid"))) -}}
    {{- $found := "" -}}
    {{- $variables := dict -}}
    {{- $longest := 0 -}}
    {{- range $written, $expression := $expressions -}}
      {{- /* The name of a variable may begin with that of another one. */ -}}
      {{- if and (contains (print "capstan0mark0" $expression.name) $marked) (gt (len $expression.name) $longest) -}}
        {{- $found = $written -}}
        {{- $longest = len $expression.name -}}
        {{- $variables = dict -}}
        {{- include "capstan.marks" (list $variables dict (list $expression)) -}}
      {{- end -}}
    {{- end -}}
    {{- fail (printf "%s: the expression %s is no text in the field %s with the given value of variable %s; write it as YAML requires in this place: in quotes, or without a colon before a blank" $called (abbrev 500 $found) $field (keys $variables | sortAlpha | join " or ")) -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.marks" -}}
{{- /* (list MARKS DERIVED EXPRESSIONS): sets in MARKS a mark for each variable of EXPRESSIONS, and of their defaults. The keys of DERIVED
become the variables whose defaults contain others. */ -}}
  {{- range $expression := last . -}}
    {{- $_ := set (first $) $expression.name (print "capstan0mark0" $expression.name) -}}
    {{- if $expression.expressions -}}
      {{- $_ := set (index $ 1) $expression.name true -}}
      {{- include "capstan.marks" (list (first $) (index $ 1) $expression.expressions) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.hasManyKeys" -}}
{{- /* (list MARKED BELOW): prints "true" if a map of MARKED has more than 4 keys with marks, or any if BELOW is set or it is below such a
key. The comparison would take long: each of them is compared with each key that it may have become. */ -}}
  {{- $value := first . -}}
  {{- $below := last . -}}
  {{- $many := false -}}
  {{- if kindIs "map" $value -}}
    {{- $keys := 0 -}}
    {{- range $key, $child := $value -}}
      {{- $marked := contains "capstan0mark0" $key -}}
      {{- if $marked }}{{ $keys = add $keys 1 }}{{ end -}}
      {{- if and $marked $below }}{{ $many = true }}
      {{- else if include "capstan.hasManyKeys" (list $child (or $marked $below)) }}{{ $many = true }}{{ end -}}
    {{- end -}}
    {{- if gt $keys 4 }}{{ $many = true }}{{ end -}}
  {{- else if kindIs "slice" $value -}}
    {{- range $value }}{{ if include "capstan.hasManyKeys" (list . $below) }}{{ $many = true }}{{ end }}{{ end -}}
  {{- end -}}
  {{- if $many }}true{{ end -}}
{{- end -}}

{{- define "capstan.differs" -}}
{{- /* (list MARKED OBJECT): prints "true" if OBJECT differs from MARKED elsewhere than in keys and values with marks. A key with a mark may
have become any other key, but none that the map has anyway. */ -}}
  {{- $marked := first . -}}
  {{- $object := last . -}}
  {{- $differs := false -}}
  {{- if deepEqual $marked $object -}}
  {{- else if and (kindIs "string" $marked) (contains "capstan0mark0" $marked) -}}
    {{- /* Numbers with more digits lose some. */ -}}
    {{- if kindIs "float64" $object }}{{ $differs = or (gt $object 9007199254740992.0) (lt $object -9007199254740992.0) }}{{ end -}}
  {{- else if and (kindIs "map" $marked) (kindIs "map" $object) -}}
    {{- $expected := list -}}
    {{- $found := list -}}
    {{- range $key, $value := $marked -}}
      {{- if contains "capstan0mark0" $key }}{{ $expected = append $expected $value }}
      {{- else if not (hasKey $object $key) }}{{ $differs = true }}
      {{- else if include "capstan.differs" (list $value (get $object $key)) }}{{ $differs = true }}{{ end -}}
    {{- end -}}
    {{- range $key, $value := $object -}}
      {{- if eq $key "<<" }}{{ $differs = true }}
      {{- else if not (hasKey $marked $key) }}{{ $found = append $found $value }}{{ end -}}
    {{- end -}}
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

{{- define "capstan.withoutServerFields" -}}
{{- /* METADATA: removes what an object that was exported from a cluster has, and a new one does not: the API server would refuse it, or
delete an object whose owner does not exist. */ -}}
  {{- $metadata := . -}}
  {{- range $field := list "deletionGracePeriodSeconds" "deletionTimestamp" "generation" "managedFields" "ownerReferences" "resourceVersion" "selfLink" "uid" -}}
    {{- $_ := unset $metadata $field -}}
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

{{- define "capstan.shared" -}}
{{- /* OBJECT: removes what others fill in, and an apply would fight about: the rules of an aggregated ClusterRole, and CAs that are no
certificate or that cert-manager injects. The API server turns stringData into data. */ -}}
  {{- $object := . -}}
  {{- if and (eq .kind "ClusterRole") .aggregationRule }}{{ $_ := unset . "rules" }}{{ end -}}
  {{- if and (eq .kind "Secret") (kindIs "map" .stringData) -}}
    {{- $data := .data | default dict -}}
    {{- $others := dict -}}
    {{- range $key, $value := .stringData -}}
      {{- if kindIs "string" $value }}{{ $_ := set $data $key (b64enc $value) }}{{ else }}{{ $_ := set $others $key $value }}{{ end -}}
    {{- end -}}
    {{- $_ := set . "data" $data -}}
    {{- $_ := set . "stringData" $others -}}
    {{- if not $others }}{{ $_ := unset . "stringData" }}{{ end -}}
  {{- end -}}
  {{- $injected := false -}}
  {{- if kindIs "map" .metadata.annotations -}}
    {{- range $key, $_ := .metadata.annotations }}{{ if hasPrefix "cert-manager.io/inject-" $key }}{{ $injected = true }}{{ end }}{{ end -}}
  {{- end -}}
  {{- $clients := list -}}
  {{- if has .kind (list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration") -}}
    {{- range .webhooks }}{{ $clients = append $clients .clientConfig }}{{ end -}}
  {{- else if eq .kind "APIService" }}{{ $clients = list .spec }}{{ end -}}
  {{- range $clients -}}
    {{- if and . .caBundle -}}
      {{- if or $injected (not (contains "-----BEGIN CERTIFICATE-----" (b64dec .caBundle))) }}{{ $_ := unset . "caBundle" }}{{ end -}}
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
