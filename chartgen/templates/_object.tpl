{{- /*
Every object of the provider passes through capstan.object, which does at render time what clusterctl does at install time:
the release's namespace goes wherever the target namespace belongs, and each object gets the labels by which clusterctl and
"clusterctl move" find it. Objects are changed after they were parsed, so a variable's value cannot hide from it.

Arguments, as a list: the chart's root context, the name of the template that holds the object's text, "namespaced" or "cluster".
*/ -}}
{{- define "capstan.object" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $object := include $name $root | fromYaml -}}
{{- if hasKey $object "Error" -}}
  {{- fail (printf "%s is not valid YAML with these variables: %s" $name $object.Error) -}}
{{- end -}}
{{- if $object -}}
  {{- $metadata := $object.metadata -}}
  {{- $from := $metadata.namespace | default "" -}}
  {{- if eq (index . 2) "namespaced" -}}
    {{- $_ := set $metadata "namespace" $root.Release.Namespace -}}
  {{- end -}}
  {{- $labels := dict "clusterctl.cluster.x-k8s.io" "" "cluster.x-k8s.io/provider" $root.Chart.Name -}}
  {{- $_ := set $metadata "labels" (merge $labels ($metadata.labels | default dict)) -}}
  {{- include "capstan.namespace" (list $object $from $root.Release.Namespace) -}}
  {{- toYaml $object -}}
{{- end -}}
{{- end -}}

{{- /*
capstan.namespace changes the object's references to its own namespace. Arguments: the object, the namespace it was written for, the release's.
*/ -}}
{{- define "capstan.namespace" -}}
{{- $object := index . 0 -}}
{{- $from := index . 1 -}}
{{- $to := index . 2 -}}
{{- if has $object.kind (list "ClusterRoleBinding" "RoleBinding") -}}
  {{- range $object.subjects -}}
    {{- if .namespace }}{{ $_ := set . "namespace" $to }}{{ end -}}
  {{- end -}}
{{- else if has $object.kind (list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration") -}}
  {{- with ($object.metadata.annotations | default dict) -}}
    {{- with get . "cert-manager.io/inject-ca-from" -}}
      {{- $certificate := splitList "/" . -}}
      {{- if ne (len $certificate) 2 -}}
        {{- fail (printf "%s %s: annotation cert-manager.io/inject-ca-from is %q, expected namespace/name" $object.kind $object.metadata.name .) -}}
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
