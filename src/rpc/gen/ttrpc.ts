import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { KeyValue as _ttrpc_KeyValue, KeyValue__Output as _ttrpc_KeyValue__Output } from './ttrpc/KeyValue.js';
import type { Request as _ttrpc_Request, Request__Output as _ttrpc_Request__Output } from './ttrpc/Request.js';
import type { Response as _ttrpc_Response, Response__Output as _ttrpc_Response__Output } from './ttrpc/Response.js';
import type { Status as _ttrpc_Status, Status__Output as _ttrpc_Status__Output } from './ttrpc/Status.js';

export interface ProtoGrpcType {
  ttrpc: {
    KeyValue: MessageTypeDefinition<_ttrpc_KeyValue, _ttrpc_KeyValue__Output>
    Request: MessageTypeDefinition<_ttrpc_Request, _ttrpc_Request__Output>
    Response: MessageTypeDefinition<_ttrpc_Response, _ttrpc_Response__Output>
    Status: MessageTypeDefinition<_ttrpc_Status, _ttrpc_Status__Output>
  }
}

