// Original file: proto/limits.proto

import type { Long } from '@grpc/proto-loader';

export interface DeviceLimits {
  'gpu_uuid'?: (string);
  'memory_bytes'?: (number | string | Long);
  'allocated_memory_bytes'?: (number | string | Long);
  'share'?: (number);
  'allocated_share'?: (number);
  'soft_limit'?: (number);
  'used_memory_bytes'?: (number | string | Long);
  'used_percent'?: (number | string);
  'generation'?: (number);
}

export interface DeviceLimits__Output {
  'gpu_uuid': (string);
  'memory_bytes': (string);
  'allocated_memory_bytes': (string);
  'share': (number);
  'allocated_share': (number);
  'soft_limit': (number);
  'used_memory_bytes': (string);
  'used_percent': (number);
  'generation': (number);
}
