{{- /* Where everything is made. */ -}}
{{- define "gpu-manager.namespace" -}}
{{ .Values.namespace | default .Release.Namespace }}
{{- end }}
{{- /* Name of the agent's objects. The label app.kubernetes.io/name stays: selectors cannot change, and commands find agents by it. */ -}}
{{- define "gpu-manager.name" -}}
{{ .Values.nameOverride | default "gpu-manager" }}
{{- end }}
