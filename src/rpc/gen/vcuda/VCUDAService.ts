// Original file: proto/vcuda.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { VDeviceRequest as _vcuda_VDeviceRequest, VDeviceRequest__Output as _vcuda_VDeviceRequest__Output } from '../vcuda/VDeviceRequest.js';
import type { VDeviceResponse as _vcuda_VDeviceResponse, VDeviceResponse__Output as _vcuda_VDeviceResponse__Output } from '../vcuda/VDeviceResponse.js';

export interface VCUDAServiceClient extends grpc.Client {
  RegisterVDevice(argument: _vcuda_VDeviceRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  RegisterVDevice(argument: _vcuda_VDeviceRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  RegisterVDevice(argument: _vcuda_VDeviceRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  RegisterVDevice(argument: _vcuda_VDeviceRequest, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  registerVDevice(argument: _vcuda_VDeviceRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  registerVDevice(argument: _vcuda_VDeviceRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  registerVDevice(argument: _vcuda_VDeviceRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  registerVDevice(argument: _vcuda_VDeviceRequest, callback: grpc.requestCallback<_vcuda_VDeviceResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface VCUDAServiceHandlers extends grpc.UntypedServiceImplementation {
  RegisterVDevice: grpc.handleUnaryCall<_vcuda_VDeviceRequest__Output, _vcuda_VDeviceResponse>;
  
}

export interface VCUDAServiceDefinition extends grpc.ServiceDefinition {
  RegisterVDevice: MethodDefinition<_vcuda_VDeviceRequest, _vcuda_VDeviceResponse, _vcuda_VDeviceRequest__Output, _vcuda_VDeviceResponse__Output>
}
