// Original file: proto/health.proto

import type { Long } from '@grpc/proto-loader';

export interface HealthChange {
  'at_ms'?: (number | string | Long);
  'status'?: (string);
  'reason'?: (string);
}

export interface HealthChange__Output {
  'at_ms': (string);
  'status': (string);
  'reason': (string);
}
