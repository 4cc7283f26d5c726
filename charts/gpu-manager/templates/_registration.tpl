{{- /*
The program that registers webhooks, every five minutes and once after each change of the release: context, name of the program's objects,
command, and its values.
*/ -}}
{{- define "gpu-manager.registrationPod" -}}
spec:
  serviceAccountName: {{ .name }}-registration
  {{- include "gpu-manager.imagePullSecrets" .context | indent 2 }}
  restartPolicy: Never
  {{- with .program.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .program.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: registration
      image: {{ include "gpu-manager.image" .context }}
      imagePullPolicy: {{ .context.Values.image.pullPolicy }}
      args:
        {{- toYaml .command | nindent 8 }}
        - --register=once
        {{- if ne (include "gpu-manager.namespace" .context) "kube-system" }}
        - --namespace={{ include "gpu-manager.namespace" .context }}
        {{- end }}
        {{- $secret := .program.secretName }}
        {{- if $secret }}
        - --tls-cert-file=/etc/gpu-manager/tls/tls.crt
        - --tls-private-key-file=/etc/gpu-manager/tls/tls.key
        - --ca-file=/etc/gpu-manager/tls/ca.crt
        {{- end }}
        {{- with .program.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources: { requests: { cpu: 50m, memory: 96Mi }, limits: { memory: 256Mi } }
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        runAsNonRoot: true
        runAsUser: 65534
        capabilities: { drop: [ALL] }
        seccompProfile: { type: RuntimeDefault }
      {{- if or $secret .program.extraVolumeMounts }}
      volumeMounts:
        {{- if $secret }}
        - { name: tls, mountPath: /etc/gpu-manager/tls, readOnly: true }
        {{- end }}
        {{- with .program.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
  {{- if or $secret .program.extraVolumes }}
  volumes:
    {{- with $secret }}
    - { name: tls, secret: { secretName: {{ . }} } }
    {{- end }}
    {{- with .program.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- define "gpu-manager.registrationJob" -}}
backoffLimit: 3
activeDeadlineSeconds: 120
# The token of its account is worth nothing once the pod is deleted.
ttlSecondsAfterFinished: 60
template:
  {{- include "gpu-manager.registrationPod" . | nindent 2 }}
{{- end }}
{{- define "gpu-manager.registration" }}
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: {{ .name }}-registration, namespace: {{ include "gpu-manager.namespace" .context }} }
spec:
  schedule: '*/5 * * * *'
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 120
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      {{- include "gpu-manager.registrationJob" . | nindent 6 }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}-registration
  namespace: {{ include "gpu-manager.namespace" .context }}
  annotations:
    helm.sh/hook: post-install,post-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  {{- include "gpu-manager.registrationJob" . | nindent 2 }}
{{- end }}
