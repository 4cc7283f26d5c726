// Original file: proto/node.proto

import type { Long } from '@grpc/proto-loader';

export interface NodeEventsRequest {
  'after'?: (number | string | Long);
}

export interface NodeEventsRequest__Output {
  'after': (string);
}
