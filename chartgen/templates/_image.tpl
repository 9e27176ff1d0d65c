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

{{- define "capstan.checkImage" -}}
{{- /* (list OBJECT CONTAINER): fails if the published image is not canonical, as clusterctl does. Images that depend on no variable were
checked when the chart was built. */ -}}
  {{- $image := (last .).image -}}
  {{- if not (and (kindIs "string" $image) (include "capstan.isCanonical" $image)) -}}
    {{- $object := first . -}}
    {{- fail (printf "%s %s: the image of the container %q is not a canonical name, such as registry.example.com/path/name:v1, with the given variables; correct the variable that sets it" $object.kind $object.metadata.name (last .).name) -}}
  {{- end -}}
{{- end -}}

{{- define "capstan.isCanonical" -}}
{{- /* IMAGE: prints "true" if it has a registry and a path, and is not a short form for Docker Hub. The first pattern is that of images in
general, in which the registry may also look like a part of the path. The second one limits the length of the path. */ -}}
  {{- $component := "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])" -}}
  {{- $registry := printf "(?:%s(?:\\.%s)*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?" $component $component -}}
  {{- $part := "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*" -}}
  {{- $digest := "(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})" -}}
  {{- $isImage := regexMatch (printf "^(?:%s/)?%s(?:/%s)*(?::\\w[\\w.-]{0,127})?(?:@%s)?$" $registry $part $part $digest) . -}}
  {{- $isShort := regexMatch "^[^/]+/[^:@]{1,255}(?:[:@]|$)" . -}}
  {{- $hasRegistry := regexMatch "^(?:localhost|[^/]*[.:A-Z][^/]*)/" . -}}
  {{- $isAlias := regexMatch "^(?:index\\.docker\\.io/|docker\\.io/[^/]*$)" . -}}
  {{- /* Tools that render a chart without its required variables set them to this text. */ -}}
  {{- $isUnknown := contains "placeholder0" . -}}
  {{- if or $isUnknown (and $isImage $isShort $hasRegistry (not $isAlias)) }}true{{ end -}}
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
