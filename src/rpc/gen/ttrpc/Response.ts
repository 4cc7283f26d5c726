// Original file: proto/ttrpc.proto

import type { Status as _ttrpc_Status, Status__Output as _ttrpc_Status__Output } from '../ttrpc/Status.js';

export interface Response {
  'status'?: (_ttrpc_Status | null);
  'payload'?: (Buffer | Uint8Array | string);
}

export interface Response__Output {
  'status': (_ttrpc_Status__Output | null);
  'payload': (Buffer);
}
