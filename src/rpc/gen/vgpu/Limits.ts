// Original file: proto/limits.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ListLimitsRequest as _vgpu_ListLimitsRequest, ListLimitsRequest__Output as _vgpu_ListLimitsRequest__Output } from '../vgpu/ListLimitsRequest.js';
import type { ListLimitsResponse as _vgpu_ListLimitsResponse, ListLimitsResponse__Output as _vgpu_ListLimitsResponse__Output } from '../vgpu/ListLimitsResponse.js';
import type { ReleaseLimitsRequest as _vgpu_ReleaseLimitsRequest, ReleaseLimitsRequest__Output as _vgpu_ReleaseLimitsRequest__Output } from '../vgpu/ReleaseLimitsRequest.js';
import type { SetLimitsRequest as _vgpu_SetLimitsRequest, SetLimitsRequest__Output as _vgpu_SetLimitsRequest__Output } from '../vgpu/SetLimitsRequest.js';
import type { SetLimitsResponse as _vgpu_SetLimitsResponse, SetLimitsResponse__Output as _vgpu_SetLimitsResponse__Output } from '../vgpu/SetLimitsResponse.js';

export interface LimitsClient extends grpc.Client {
  List(argument: _vgpu_ListLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListLimitsRequest, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListLimitsRequest, callback: grpc.requestCallback<_vgpu_ListLimitsResponse__Output>): grpc.ClientUnaryCall;
  
  Release(argument: _vgpu_ReleaseLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Release(argument: _vgpu_ReleaseLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Release(argument: _vgpu_ReleaseLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Release(argument: _vgpu_ReleaseLimitsRequest, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  release(argument: _vgpu_ReleaseLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  release(argument: _vgpu_ReleaseLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  release(argument: _vgpu_ReleaseLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  release(argument: _vgpu_ReleaseLimitsRequest, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  
  Set(argument: _vgpu_SetLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Set(argument: _vgpu_SetLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Set(argument: _vgpu_SetLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  Set(argument: _vgpu_SetLimitsRequest, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  set(argument: _vgpu_SetLimitsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  set(argument: _vgpu_SetLimitsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  set(argument: _vgpu_SetLimitsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  set(argument: _vgpu_SetLimitsRequest, callback: grpc.requestCallback<_vgpu_SetLimitsResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface LimitsHandlers extends grpc.UntypedServiceImplementation {
  List: grpc.handleUnaryCall<_vgpu_ListLimitsRequest__Output, _vgpu_ListLimitsResponse>;
  
  Release: grpc.handleUnaryCall<_vgpu_ReleaseLimitsRequest__Output, _vgpu_SetLimitsResponse>;
  
  Set: grpc.handleUnaryCall<_vgpu_SetLimitsRequest__Output, _vgpu_SetLimitsResponse>;
  
}

export interface LimitsDefinition extends grpc.ServiceDefinition {
  List: MethodDefinition<_vgpu_ListLimitsRequest, _vgpu_ListLimitsResponse, _vgpu_ListLimitsRequest__Output, _vgpu_ListLimitsResponse__Output>
  Release: MethodDefinition<_vgpu_ReleaseLimitsRequest, _vgpu_SetLimitsResponse, _vgpu_ReleaseLimitsRequest__Output, _vgpu_SetLimitsResponse__Output>
  Set: MethodDefinition<_vgpu_SetLimitsRequest, _vgpu_SetLimitsResponse, _vgpu_SetLimitsRequest__Output, _vgpu_SetLimitsResponse__Output>
}
