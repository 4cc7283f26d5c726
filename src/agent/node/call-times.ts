import { histogram } from '../../http/metrics.js';

/** Calls of the kubelet. */
export type KubeletCall = 'preferred' | 'allocate' | 'prestart';

export const CALL_DURATION = {
  name: 'vgpu_kubelet_call_duration_seconds',
  type: 'histogram',
  help: 'Time from a call of the kubelet to its answer, by call, resource (core, memory) and result (ok, refused, error)',
  labels: ['call', 'resource', 'result'],
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
} as const;

export const CLAIM_CALL_DURATION = {
  name: 'gpu_dra_call_duration_seconds',
  type: 'histogram',
  help: 'Time from a call of the kubelet about claims to its answer, by call (prepare, unprepare) and result (ok, refused, error)',
  labels: ['call', 'result'],
  buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 45],
} as const;

/** Measures how long the kubelet waited for answers. */
export class CallTimes {
  readonly durations = histogram(CALL_DURATION);
  readonly claimDurations = histogram(CLAIM_CALL_DURATION);

  observeClaims(call: 'prepare' | 'unprepare', result: 'ok' | 'refused' | 'error', seconds: number): void {
    this.claimDurations.observe({ call, result }, seconds);
  }

  observe(call: KubeletCall, resource: string, result: 'ok' | 'refused' | 'error', seconds: number): void {
    this.durations.observe({ call, resource, result }, seconds);
  }
}
