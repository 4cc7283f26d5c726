// Original file: proto/health.proto

import type { GpuHealth as _vgpu_GpuHealth, GpuHealth__Output as _vgpu_GpuHealth__Output } from '../vgpu/GpuHealth.js';

export interface ListHealthResponse {
  'gpus'?: (_vgpu_GpuHealth)[];
}

export interface ListHealthResponse__Output {
  'gpus': (_vgpu_GpuHealth__Output)[];
}
