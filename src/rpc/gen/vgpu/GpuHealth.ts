// Original file: proto/health.proto

import type { HealthChange as _vgpu_HealthChange, HealthChange__Output as _vgpu_HealthChange__Output } from '../vgpu/HealthChange.js';
import type { Long } from '@grpc/proto-loader';

export interface GpuHealth {
  'index'?: (number);
  'uuid'?: (string);
  'status'?: (string);
  'reason'?: (string);
  'since_ms'?: (number | string | Long);
  'until_ms'?: (number | string | Long);
  'changes'?: (_vgpu_HealthChange)[];
}

export interface GpuHealth__Output {
  'index': (number);
  'uuid': (string);
  'status': (string);
  'reason': (string);
  'since_ms': (string);
  'until_ms': (string);
  'changes': (_vgpu_HealthChange__Output)[];
}
