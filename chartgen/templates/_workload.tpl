{{- /*
Changes to workloads that the values ask for. Unless noted otherwise, each template changes its argument in place and prints
nothing. A value that is absent or null changes nothing.
*/ -}}

{{- define "capstan.workload" -}}
{{- /* (list OBJECT VALUES ENTRY): changes the images of a workload, and applies .Values.deployments and .Values.paused. */ -}}
  {{- $object := index . 0 -}}
  {{- $values := index . 1 -}}
  {{- $entry := index . 2 -}}
  {{- $kind := printf "%s %s" $object.apiVersion $object.kind -}}
  {{- $pod := dict -}}
  {{- if has $kind (list "apps/v1 Deployment" "apps/v1 DaemonSet" "apps/v1 StatefulSet" "apps/v1 ReplicaSet" "batch/v1 Job") -}}
    {{- $pod = $object.spec.template -}}
  {{- else if eq $kind "batch/v1 CronJob" -}}
    {{- $pod = $object.spec.jobTemplate.spec.template -}}
  {{- else if eq $kind "v1 Pod" -}}
    {{- $pod = $object -}}
  {{- end -}}
  {{- with $pod.spec -}}
    {{- range concat (.initContainers | default list) (.containers | default list) -}}
      {{- if has $object.kind (list "Deployment" "DaemonSet") }}{{ include "capstan.checkImage" (list $object .) }}{{ end -}}
      {{- if kindIs "string" .image }}{{ $_ := set . "image" (include "capstan.image" (list .image $values)) }}{{ end -}}
    {{- end -}}
  {{- end -}}
  {{- if eq $kind "apps/v1 Deployment" -}}
    {{- $settings := include "capstan.settings" (list $values $entry) | fromJson -}}
    {{- if and $settings.highAvailability $entry.singlePod -}}
      {{- fail (printf "deployments.%s.highAvailability is not possible for this Deployment: %s; remove the value" $entry.name $entry.singlePod) -}}
    {{- end -}}
    {{- if $settings }}{{ include "capstan.deployment" (list $object $settings) }}{{ end -}}
    {{- if $values.paused }}{{ $_ := set $object.spec "replicas" 0 }}{{ end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.settings" -}}
{{- /* (list VALUES ENTRY): prints the settings of a Deployment, as JSON. */ -}}
  {{- index ((first .).deployments | default dict) (last .).name | default dict | toJson -}}
{{- end -}}

{{- define "capstan.deployment" -}}
{{- /* (list DEPLOYMENT SETTINGS): applies the settings of one Deployment. */ -}}
  {{- $deployment := first . -}}
  {{- $settings := last . -}}
  {{- $pod := $deployment.spec.template -}}
  {{- if $settings.highAvailability }}{{ include "capstan.highAvailability" $deployment.spec }}{{ end -}}
  {{- if not (kindIs "invalid" $settings.replicas) -}}
    {{- $_ := set $deployment.spec "replicas" (int64 $settings.replicas) -}}
  {{- end -}}
  {{- range $field := list "nodeSelector" "tolerations" "affinity" "serviceAccountName" "imagePullSecrets" "priorityClassName" "topologySpreadConstraints" -}}
    {{- $value := index $settings $field -}}
    {{- if not (kindIs "invalid" $value) }}{{ $_ := set $pod.spec $field $value }}{{ end -}}
  {{- end -}}
  {{- with $settings.securityContext }}{{ include "capstan.merge" (list $pod.spec (dict "securityContext" .)) }}{{ end -}}
  {{- range $label, $value := $settings.podLabels -}}
    {{- if hasKey ($deployment.spec.selector.matchLabels | default dict) $label -}}
      {{- fail (printf "deployments.%s.podLabels: the Deployment selects its pods by the label %s, which must not change; remove the label" $deployment.metadata.name $label) -}}
    {{- end -}}
  {{- end -}}
  {{- $metadata := $pod.metadata | default dict -}}
  {{- $_ := set $pod "metadata" $metadata -}}
  {{- include "capstan.setAll" (list $metadata "labels" $settings.podLabels) -}}
  {{- include "capstan.setAll" (list $metadata "annotations" $settings.podAnnotations) -}}
  {{- $changed := dict -}}
  {{- range $container := concat ($pod.spec.initContainers | default list) ($pod.spec.containers | default list) -}}
    {{- with index ($settings.containers | default dict) $container.name -}}
      {{- if hasKey $changed $container.name -}}
        {{- fail (printf "deployments.%s.containers: the Deployment has several containers %s, of which none can be changed" $deployment.metadata.name $container.name) -}}
      {{- end -}}
      {{- $_ := set $changed $container.name true -}}
      {{- include "capstan.container" (list $container .) -}}
    {{- end -}}
  {{- end -}}
  {{- if $settings.highAvailability -}}
    {{- $elects := false -}}
    {{- range $container := $pod.spec.containers -}}
      {{- range concat ($container.command | default list) ($container.args | default list) -}}
        {{- if regexMatch "^--?(leader-elect|enable-leader-election)(=|$)" . -}}
          {{- $elects = regexMatch "^[^=]*(=true)?$" . -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
    {{- if not $elects -}}
      {{- fail (printf "deployments.%s.highAvailability is not possible without leader election: two managers would change the same objects; remove the value, or set the manager's flag leader-elect" $deployment.metadata.name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.highAvailability" -}}
{{- /* SPEC: changes the spec of a Deployment so that a pod answers requests at all times. What is published stays. */ -}}
  {{- $pod := .template.spec -}}
  {{- $_ := set . "replicas" (max 2 (int64 (.replicas | default 1))) -}}
  {{- if not .strategy -}}
    {{- $_ := set . "strategy" (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxUnavailable" 0 "maxSurge" 1)) -}}
  {{- end -}}
  {{- if not $pod.topologySpreadConstraints -}}
    {{- $spread := dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" -}}
    {{- $_ := set $spread "labelSelector" .selector -}}
    {{- $_ := set $spread "matchLabelKeys" (list "pod-template-hash") -}}
    {{- $_ := set $pod "topologySpreadConstraints" (list $spread) -}}
  {{- end -}}
  {{- /* Until all nodes know that a pod ends, they send requests to it. So it keeps serving for a while, besides the time that it may
  take to stop. */ -}}
  {{- $seconds := 15 -}}
  {{- $_ := set $pod "terminationGracePeriodSeconds" (add $seconds ($pod.terminationGracePeriodSeconds | default 30)) -}}
  {{- range $container := $pod.containers -}}
    {{- $lifecycle := $container.lifecycle | default dict -}}
    {{- if not $lifecycle.preStop -}}
      {{- $_ := set $container "lifecycle" (merge (dict "preStop" (dict "sleep" (dict "seconds" $seconds))) $lifecycle) -}}
    {{- end -}}
    {{- range $container.ports -}}
      {{- if and (eq (.name | default "") "webhook-server") (not $container.readinessProbe) -}}
        {{- $_ := set $container "readinessProbe" (dict "tcpSocket" (dict "port" "webhook-server")) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.disruptionBudget" -}}
{{- /* (list ROOT DEPLOYMENT): prints the PodDisruptionBudget of a Deployment, as JSON. Of one pod or none, one may be unavailable too, so it blocks
no drain. */ -}}
  {{- $deployment := last . -}}
  {{- $spec := dict "maxUnavailable" 1 "unhealthyPodEvictionPolicy" "AlwaysAllow" "selector" $deployment.spec.selector -}}
  {{- $metadata := pick $deployment.metadata "name" "namespace" "labels" -}}
  {{- with (first .).Values.commonAnnotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
  {{- toJson (dict "apiVersion" "policy/v1" "kind" "PodDisruptionBudget" "metadata" $metadata "spec" $spec) -}}
{{- end -}}

{{- define "capstan.container" -}}
{{- /* (list CONTAINER SETTINGS): applies the settings of one container. */ -}}
  {{- $container := first . -}}
  {{- $settings := last . -}}
  {{- with $settings.image -}}
    {{- $image := . -}}
    {{- if kindIs "map" . }}{{ $image = include "capstan.imageWith" (list ($container.image | default "") .) }}{{ end -}}
    {{- $_ := set $container "image" $image -}}
  {{- end -}}
  {{- if not (kindIs "invalid" $settings.command) }}{{ $_ := set $container "command" $settings.command }}{{ end -}}
  {{- with $settings.args -}}
    {{- $_ := set $container "args" (include "capstan.args" (list $container.args .) | fromJsonArray) -}}
  {{- end -}}
  {{- with $settings.featureGates -}}
    {{- $gates := dict "feature-gates" (include "capstan.featureGates" (list $container.args .)) -}}
    {{- $_ := set $container "args" (include "capstan.args" (list $container.args $gates) | fromJsonArray) -}}
  {{- end -}}
  {{- with $settings.env -}}
    {{- $_ := set $container "env" (include "capstan.env" (list $container.env .) | fromJsonArray) -}}
  {{- end -}}
  {{- range $field := list "resources" "livenessProbe" "readinessProbe" -}}
    {{- with index $settings $field }}{{ include "capstan.merge" (list $container (dict $field .)) }}{{ end -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.args" -}}
{{- /* (list ARGS FLAGS): prints ARGS with FLAGS set, as a JSON array. FLAGS maps names, with or without leading dashes, to values. A
published flag keeps its position and appears once; null removes it. New flags follow, sorted. The value of a flag may be a separate argument. */ -}}
  {{- $flags := dict -}}
  {{- range $flag, $value := last . }}{{ $_ := set $flags (regexReplaceAll "^-+" $flag "") $value }}{{ end -}}
  {{- $result := list -}}
  {{- $done := dict -}}
  {{- $dropValue := false -}}
  {{- range $arg := first . -}}
    {{- $flag := "" -}}
    {{- if hasPrefix "-" $arg }}{{ $flag = regexReplaceAll "(?s)^-+([^=]*).*" $arg "${1}" }}{{ end -}}
    {{- if and $flag (hasKey $flags $flag) -}}
      {{- $value := index $flags $flag -}}
      {{- if not (or (hasKey $done $flag) (kindIs "invalid" $value)) -}}
        {{- $result = append $result (printf "--%s=%s" $flag (include "capstan.text" $value)) -}}
      {{- end -}}
      {{- $_ := set $done $flag true -}}
      {{- $dropValue = not (contains "=" $arg) -}}
    {{- else if or (hasPrefix "-" $arg) (not $dropValue) -}}
      {{- $result = append $result $arg -}}
      {{- $dropValue = false -}}
    {{- else -}}
      {{- $dropValue = false -}}
    {{- end -}}
  {{- end -}}
  {{- range $flag, $value := $flags -}}
    {{- if not (or (hasKey $done $flag) (kindIs "invalid" $value)) -}}
      {{- $result = append $result (printf "--%s=%s" $flag (include "capstan.text" $value)) -}}
    {{- end -}}
  {{- end -}}
  {{- toJson $result -}}
{{- end -}}

{{- define "capstan.featureGates" -}}
{{- /* (list ARGS GATES): prints the value of --feature-gates in ARGS with GATES merged into it, sorted. */ -}}
  {{- $gates := dict -}}
  {{- $before := "" -}}
  {{- range $arg := first . -}}
    {{- if regexMatch "^--?feature-gates=" $arg }}{{ $before = "--feature-gates" }}{{ $arg = regexReplaceAll "(?s)^[^=]*=" $arg "" }}{{ end -}}
    {{- if regexMatch "^--?feature-gates$" $before -}}
      {{- range splitList "," (trimAll "\"' " $arg) -}}
        {{- $gate := splitn "=" 2 . -}}
        {{- if gt (len $gate) 1 }}{{ $_ := set $gates (trim $gate._0) (trim $gate._1) }}{{ end -}}
      {{- end -}}
    {{- end -}}
    {{- $before = $arg -}}
  {{- end -}}
  {{- range $gate, $value := last . }}{{ $_ := set $gates $gate (include "capstan.text" $value) }}{{ end -}}
  {{- $pairs := list -}}
  {{- range $gate, $value := $gates }}{{ $pairs = append $pairs (printf "%s=%s" $gate $value) }}{{ end -}}
  {{- join "," $pairs -}}
{{- end -}}

{{- define "capstan.env" -}}
{{- /* (list ENV CHANGES): prints ENV with CHANGES, as a JSON array. Each change replaces the variable of its name, or is appended. */ -}}
  {{- $changes := dict -}}
  {{- range last . }}{{ $_ := set $changes .name . }}{{ end -}}
  {{- $result := list -}}
  {{- $done := dict -}}
  {{- range concat (first . | default list) (last .) -}}
    {{- if not (hasKey $done .name) }}{{ $result = append $result (index $changes .name | default .) }}{{ end -}}
    {{- if hasKey $changes .name }}{{ $_ := set $done .name true }}{{ end -}}
  {{- end -}}
  {{- toJson $result -}}
{{- end -}}

{{- define "capstan.text" -}}
{{- /* prints a value as text, with numbers in full. */ -}}
  {{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end -}}
