// Original file: proto/limits.proto

import type { Long } from '@grpc/proto-loader';

export interface SetLimitsRequest {
  'allocation'?: (string);
  'memory_bytes'?: (number | string | Long);
  'share'?: (number);
  'soft_limit'?: (number);
}

export interface SetLimitsRequest__Output {
  'allocation': (string);
  'memory_bytes': (string);
  'share': (number);
  'soft_limit': (number);
}
