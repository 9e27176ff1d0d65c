{{- /*
Image references: [registry[:port]/path/]name[:tag][@digest]. As in clusterctl, the repository is everything before the last slash.
*/ -}}

{{- define "capstan.image" -}}
{{- /* (list IMAGE VALUES): prints the image after applying .Values.images and .Values.imageRegistry. */ -}}
  {{- $image := first . -}}
  {{- $values := last . -}}
  {{- $name := regexReplaceAll "[:@].*$" (splitList "/" $image | last) "" -}}
  {{- range $key := list "all" $name -}}
    {{- with index ($values.images | default dict) $key }}{{ $image = include "capstan.imageWith" (list $image .) }}{{ end -}}
  {{- end -}}
  {{- with $values.imageRegistry -}}
    {{- if regexMatch "^((index\\.)?docker\\.io/)?[^/]*$" $image -}}
      {{- $image = printf "docker.io/library/%s" (splitList "/" $image | last) -}}
    {{- end -}}
    {{- $image = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image "") -}}
  {{- end -}}
  {{- $image -}}
{{- end -}}

{{- define "capstan.imageWith" -}}
{{- /* (list IMAGE {repository, name, tag}): prints the image with those parts replaced that are set. As in clusterctl, a digest stays. */ -}}
  {{- $parts := "^(?:(.*)/)?([^/:@]*)(.*)$" -}}
  {{- $repository := (last .).repository | default (regexReplaceAll $parts (first .) "${1}") | trimSuffix "/" -}}
  {{- with $repository }}{{ . }}/{{ end -}}
  {{- (last .).name | default (regexReplaceAll $parts (first .) "${2}") -}}
  {{- $suffix := regexReplaceAll $parts (first .) "${3}" -}}
  {{- with (last .).tag }}{{ $suffix = printf ":%v%s" . (regexFind "@.*$" $suffix) }}{{ end -}}
  {{- $suffix -}}
{{- end -}}
