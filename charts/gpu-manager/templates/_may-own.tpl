{{- /*
Whether the release may hold an object (context, API version, kind, namespace, name): it is not there, or the release made it.
Programs of earlier versions made some objects by themselves; those stay theirs.
*/ -}}
{{- define "gpu-manager.mayOwn" -}}
{{- $there := lookup (index . 1) (index . 2) (index . 3) (index . 4) -}}
{{- $release := (index . 0).Release.Name -}}
{{- if or (not $there) (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there) $release) }}true{{ end -}}
{{- end }}
