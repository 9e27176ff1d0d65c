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
{{- $object := include "capstan.fill" (list $root $entry $text) | replace "\r\n" "\n" | fromYaml -}}
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
{{- /* (list ROOT ENTRY): prints what messages call an object: its kind, namespace and name. */ -}}
  {{- $entry := last . -}}
  {{- $entry.kind }} {{ if not $entry.clusterScoped }}{{ (first .).Release.Namespace }}/{{ end }}{{ $entry.name -}}
{{- end -}}

{{- define "capstan.fill" -}}
{{- /* (list ROOT ENTRY TEXT): prints the text of the entry's object, with JSON in place of each scalar that contains expressions. So a value
changes only the key or value that contains it, and nothing if that is a comment. */ -}}
  {{- $called := include "capstan.called" (list (index . 0) (index . 1)) -}}
  {{- $variables := (index . 0).Values.variables | default dict -}}
  {{- $rest := last . -}}
  {{- $keys := dict -}}
  {{- $causes := dict -}}
  {{- range $scalar := (index . 1).scalars -}}
    {{- $parts := splitn $scalar.written 2 $rest -}}
    {{- if lt (len $parts) 2 }}{{ include "capstan.literal" $rest }}{{ fail (printf "%s: the object is not the one that files/objects.json describes; build the chart again" $called) }}{{ end -}}
    {{- include "capstan.literal" $parts._0 -}}
    {{- $rest = $parts._1 -}}
    {{- $node := include "capstan.read" (list $scalar $variables) -}}
    {{- if $scalar.map -}}
      {{- range $scalar.keys }}{{ $_ := set $keys (print $scalar.map .) true }}{{ end -}}
      {{- $key := print $scalar.map $node -}}
      {{- if hasKey $keys $key }}{{ $node = "" }}{{ end -}}
      {{- $_ := set $keys $key true -}}
    {{- end -}}
    {{- if not $node }}{{ include "capstan.setCauses" (list $causes $scalar $variables) }}
    {{- else if and $scalar.field (not (regexMatch "^(\"|null$)" $node)) }}{{ include "capstan.refuseField" (list $called $scalar) }}{{ end -}}
    {{- with $scalar.anchor }}&{{ . }} {{ end -}}
    {{- $node -}}
    {{- if hasSuffix "\n" $scalar.written }}{{ "\n" }}{{ end -}}
  {{- end -}}
  {{- include "capstan.literal" $rest -}}
  {{- if $causes }}{{ include "capstan.refuse" (list $called (keys $causes | sortAlpha) $variables) }}{{ end -}}
{{- end -}}

{{- define "capstan.literal" -}}
{{- /* TEXT: prints a text without expressions, with a dollar sign for $$. */ -}}
  {{- with regexFind "\\$\\{.{0,60}" (replace "$$" "" .) }}{{ fail (printf "files/objects.json does not list the expression at %q; build the chart again" .) }}{{ end -}}
  {{- replace "$$" "$" . -}}
{{- end -}}

{{- define "capstan.read" -}}
{{- /* (list SCALAR VARIABLES): prints the JSON of what the scalar is with these values, or # for a comment. It prints nothing if the values
make something else of it than one key, one value or comments: it is read in a frame with keys that it cannot contain, one of them at the end. */ -}}
  {{- $scalar := first . -}}
  {{- $text := include "capstan.expand" (list $scalar.written $scalar.expressions (last .)) -}}
  {{- $key := print "k" (sha256sum $text) -}}
  {{- $end := print $key "0" -}}
  {{- $framed := printf $scalar.frame $key $text | replace "\r\n" "\n" -}}
  {{- /* clusterctl begins another document at each line with a separator, in quotes, too. */ -}}
  {{- $found := ternary dict (fromYaml $framed) (contains "\n---" (print "\n" $framed)) -}}
  {{- $value := get $found $key -}}
  {{- $others := omit $found $key $end -}}
  {{- $node := "" -}}
  {{- if not (hasKey $found $end) -}}
    {{- if and (kindIs "slice" $value) (not $others) }}{{ if and (eq (len $value) 2) (eq (last $value | toString) $end) }}
      {{- $value = first $value -}}
      {{- $node = toJson $value -}}
    {{- end }}{{ end -}}
  {{- else if $scalar.map -}}
    {{- range $name, $content := $others }}{{ if and (eq (len $found) 2) (eq (toString $content) $key) }}{{ $node = toJson $name }}{{ end }}{{ end -}}
  {{- else if not $others }}{{ $node = ternary (toJson $value) "#" (hasKey $found $key) }}{{ end -}}
  {{- if or $scalar.constant (eq $node "#") }}{{ if ne $node (toString $scalar.constant) }}{{ $node = "" }}{{ end }}{{ end -}}
  {{- if and $scalar.map (eq $node "\"<<\"") }}{{ $node = "" }}{{ end -}}
  {{- /* Larger numbers lose digits, or have lost some. */ -}}
  {{- if kindIs "float64" $value }}{{ if or (ge $value 9007199254740992.0) (le $value -9007199254740992.0) }}{{ $node = "" }}{{ end }}{{ end -}}
  {{- $node -}}
{{- end -}}

{{- define "capstan.setCauses" -}}
{{- /* (list CAUSES SCALAR VARIABLES): sets in CAUSES each variable whose value alone makes something else of the scalar, or all of its
variables. If one is used in the default of others that have no value, they have none here either. */ -}}
  {{- $causes := first . -}}
  {{- $scalar := index . 1 -}}
  {{- $variables := last . -}}
  {{- $others := dict -}}
  {{- $derived := dict -}}
  {{- include "capstan.setNames" (list $others $derived $scalar.expressions) -}}
  {{- $names := keys $others -}}
  {{- range $name := keys $derived -}}
    {{- if not (include "capstan.value" (list (dict "name" $name) $variables)) }}{{ $_ := unset $others $name }}{{ end -}}
  {{- end -}}
  {{- $found := list -}}
  {{- /* To try each takes long if there are many. */ -}}
  {{- range $name := ternary $names list (le (len $names) 20) -}}
    {{- $alone := set (merge dict $others) $name (get $variables $name) -}}
    {{- if not (include "capstan.read" (list $scalar $alone)) }}{{ $found = append $found $name }}{{ end -}}
  {{- end -}}
  {{- range $found | default $names }}{{ $_ := set $causes . true }}{{ end -}}
{{- end -}}

{{- define "capstan.setNames" -}}
{{- /* (list NAMES DERIVED EXPRESSIONS): sets in NAMES a plain text for each variable of EXPRESSIONS, and of their defaults. The keys of DERIVED
become the variables whose defaults contain others. */ -}}
  {{- range $expression := last . -}}
    {{- $_ := set (first $) $expression.name "placeholder0" -}}
    {{- if $expression.expressions -}}
      {{- $_ := set (index $ 1) $expression.name true -}}
      {{- include "capstan.setNames" (list (first $) (index $ 1) $expression.expressions) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.refuse" -}}
{{- /* (list CALLED NAMES VARIABLES): fails because of the values of variables. The message contains neither values nor what a parser quotes. */ -}}
  {{- $names := index . 1 -}}
  {{- $fix := "write it as YAML requires in this place: in quotes, or with its quotes escaped" -}}
  {{- range $name := $names -}}
    {{- $value := get (last $) $name | toString -}}
    {{- if regexMatch "^[^\r\n]*\n$" $value }}{{ $fix = "remove the line break at its end" }}
    {{- else if regexMatch "[\r\n]" $value }}{{ $fix = "write it on one line, as base64 -w0 does" }}{{ end -}}
  {{- end -}}
  {{- $subject := printf "the value of variable %s changes more than the field that contains it" (join ", " $names) -}}
  {{- if gt (len $names) 20 -}}
    {{- $subject = "the values of its variables change more than the fields that contain them" -}}
  {{- else if gt (len $names) 1 -}}
    {{- $subject = printf "the values of variables %s change more than the fields that contain them" (join ", " $names) -}}
  {{- end -}}
  {{- fail (printf "%s: %s; %s" (first .) $subject $fix) -}}
{{- end -}}

{{- define "capstan.refuseField" -}}
{{- /* (list CALLED SCALAR): fails because the scalar is no text. The API server would refuse it without saying where the value comes from. */ -}}
  {{- $scalar := last . -}}
  {{- $names := dict -}}
  {{- include "capstan.setNames" (list $names dict $scalar.expressions) -}}
  {{- fail (printf "%s: the expression %s is no text in the field %s with the given value of variable %s; write it as YAML requires in this place: in quotes, or without a colon before a blank" (first .) (keys $scalar.expressions | sortAlpha | join " " | abbrev 500) $scalar.field (keys $names | sortAlpha | join " or ")) -}}
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
    {{- include "capstan.literal" $text -}}
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
