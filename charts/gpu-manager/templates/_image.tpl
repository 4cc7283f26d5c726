{{- define "gpu-manager.image" -}}
{{- if not (or .Values.image.registry .Values.image.local) }}
{{- fail "image.registry is empty, so nodes cannot pull the image: name its registry (--set image.registry=registry.example.com/gpu), or set image.local=true if every node has the image" }}
{{- end -}}
{{ with .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- define "gpu-manager.imagePullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
