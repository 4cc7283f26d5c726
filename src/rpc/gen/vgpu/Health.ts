// Original file: proto/health.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ClearHealthRequest as _vgpu_ClearHealthRequest, ClearHealthRequest__Output as _vgpu_ClearHealthRequest__Output } from '../vgpu/ClearHealthRequest.js';
import type { ClearHealthResponse as _vgpu_ClearHealthResponse, ClearHealthResponse__Output as _vgpu_ClearHealthResponse__Output } from '../vgpu/ClearHealthResponse.js';
import type { ListHealthRequest as _vgpu_ListHealthRequest, ListHealthRequest__Output as _vgpu_ListHealthRequest__Output } from '../vgpu/ListHealthRequest.js';
import type { ListHealthResponse as _vgpu_ListHealthResponse, ListHealthResponse__Output as _vgpu_ListHealthResponse__Output } from '../vgpu/ListHealthResponse.js';

export interface HealthClient extends grpc.Client {
  Clear(argument: _vgpu_ClearHealthRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  Clear(argument: _vgpu_ClearHealthRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  Clear(argument: _vgpu_ClearHealthRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  Clear(argument: _vgpu_ClearHealthRequest, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  clear(argument: _vgpu_ClearHealthRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  clear(argument: _vgpu_ClearHealthRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  clear(argument: _vgpu_ClearHealthRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  clear(argument: _vgpu_ClearHealthRequest, callback: grpc.requestCallback<_vgpu_ClearHealthResponse__Output>): grpc.ClientUnaryCall;
  
  List(argument: _vgpu_ListHealthRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListHealthRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListHealthRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _vgpu_ListHealthRequest, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListHealthRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListHealthRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListHealthRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _vgpu_ListHealthRequest, callback: grpc.requestCallback<_vgpu_ListHealthResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface HealthHandlers extends grpc.UntypedServiceImplementation {
  Clear: grpc.handleUnaryCall<_vgpu_ClearHealthRequest__Output, _vgpu_ClearHealthResponse>;
  
  List: grpc.handleUnaryCall<_vgpu_ListHealthRequest__Output, _vgpu_ListHealthResponse>;
  
}

export interface HealthDefinition extends grpc.ServiceDefinition {
  Clear: MethodDefinition<_vgpu_ClearHealthRequest, _vgpu_ClearHealthResponse, _vgpu_ClearHealthRequest__Output, _vgpu_ClearHealthResponse__Output>
  List: MethodDefinition<_vgpu_ListHealthRequest, _vgpu_ListHealthResponse, _vgpu_ListHealthRequest__Output, _vgpu_ListHealthResponse__Output>
}
