{{- /*
Image references: [registry[:port]/path/]name[:tag][@digest]. What precedes the last slash is the repository, in clusterctl's words.
*/ -}}

{{- define "capstan.image" -}}
{{- /* (list IMAGE VALUES): prints the image as .Values.images and .Values.imageRegistry have it. */ -}}
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
{{- /* (list IMAGE {repository, name, tag}): prints the image with these parts, as far as they are set. A tag also replaces a digest. */ -}}
  {{- $parts := "^(?:(.*)/)?([^/:@]*)(.*)$" -}}
  {{- $repository := (last .).repository | default (regexReplaceAll $parts (first .) "${1}") | trimSuffix "/" -}}
  {{- with $repository }}{{ . }}/{{ end -}}
  {{- (last .).name | default (regexReplaceAll $parts (first .) "${2}") -}}
  {{- with (last .).tag }}:{{ . }}{{ else }}{{ regexReplaceAll $parts (first .) "${3}" }}{{ end -}}
{{- end -}}
