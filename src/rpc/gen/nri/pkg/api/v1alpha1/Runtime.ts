// Original file: proto/nri-v1alpha1.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { Empty as _nri_pkg_api_v1alpha1_Empty, Empty__Output as _nri_pkg_api_v1alpha1_Empty__Output } from '../../../../nri/pkg/api/v1alpha1/Empty.js';
import type { RegisterPluginRequest as _nri_pkg_api_v1alpha1_RegisterPluginRequest, RegisterPluginRequest__Output as _nri_pkg_api_v1alpha1_RegisterPluginRequest__Output } from '../../../../nri/pkg/api/v1alpha1/RegisterPluginRequest.js';

export interface RuntimeClient extends grpc.Client {
  RegisterPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RegisterPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RegisterPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RegisterPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  registerPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  registerPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  registerPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  registerPlugin(argument: _nri_pkg_api_v1alpha1_RegisterPluginRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  
}

export interface RuntimeHandlers extends grpc.UntypedServiceImplementation {
  RegisterPlugin: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_RegisterPluginRequest__Output, _nri_pkg_api_v1alpha1_Empty>;
  
}

export interface RuntimeDefinition extends grpc.ServiceDefinition {
  RegisterPlugin: MethodDefinition<_nri_pkg_api_v1alpha1_RegisterPluginRequest, _nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_RegisterPluginRequest__Output, _nri_pkg_api_v1alpha1_Empty__Output>
}
