// Original file: proto/nri-v1alpha1.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ConfigureRequest as _nri_pkg_api_v1alpha1_ConfigureRequest, ConfigureRequest__Output as _nri_pkg_api_v1alpha1_ConfigureRequest__Output } from '../../../../nri/pkg/api/v1alpha1/ConfigureRequest.js';
import type { ConfigureResponse as _nri_pkg_api_v1alpha1_ConfigureResponse, ConfigureResponse__Output as _nri_pkg_api_v1alpha1_ConfigureResponse__Output } from '../../../../nri/pkg/api/v1alpha1/ConfigureResponse.js';
import type { ContainerRequest as _nri_pkg_api_v1alpha1_ContainerRequest, ContainerRequest__Output as _nri_pkg_api_v1alpha1_ContainerRequest__Output } from '../../../../nri/pkg/api/v1alpha1/ContainerRequest.js';
import type { CreateContainerRequest as _nri_pkg_api_v1alpha1_CreateContainerRequest, CreateContainerRequest__Output as _nri_pkg_api_v1alpha1_CreateContainerRequest__Output } from '../../../../nri/pkg/api/v1alpha1/CreateContainerRequest.js';
import type { CreateContainerResponse as _nri_pkg_api_v1alpha1_CreateContainerResponse, CreateContainerResponse__Output as _nri_pkg_api_v1alpha1_CreateContainerResponse__Output } from '../../../../nri/pkg/api/v1alpha1/CreateContainerResponse.js';
import type { Empty as _nri_pkg_api_v1alpha1_Empty, Empty__Output as _nri_pkg_api_v1alpha1_Empty__Output } from '../../../../nri/pkg/api/v1alpha1/Empty.js';
import type { StateChangeEvent as _nri_pkg_api_v1alpha1_StateChangeEvent, StateChangeEvent__Output as _nri_pkg_api_v1alpha1_StateChangeEvent__Output } from '../../../../nri/pkg/api/v1alpha1/StateChangeEvent.js';
import type { StopContainerResponse as _nri_pkg_api_v1alpha1_StopContainerResponse, StopContainerResponse__Output as _nri_pkg_api_v1alpha1_StopContainerResponse__Output } from '../../../../nri/pkg/api/v1alpha1/StopContainerResponse.js';
import type { SynchronizeRequest as _nri_pkg_api_v1alpha1_SynchronizeRequest, SynchronizeRequest__Output as _nri_pkg_api_v1alpha1_SynchronizeRequest__Output } from '../../../../nri/pkg/api/v1alpha1/SynchronizeRequest.js';
import type { SynchronizeResponse as _nri_pkg_api_v1alpha1_SynchronizeResponse, SynchronizeResponse__Output as _nri_pkg_api_v1alpha1_SynchronizeResponse__Output } from '../../../../nri/pkg/api/v1alpha1/SynchronizeResponse.js';

export interface PluginClient extends grpc.Client {
  Configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  Configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  Configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  Configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  configure(argument: _nri_pkg_api_v1alpha1_ConfigureRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_ConfigureResponse__Output>): grpc.ClientUnaryCall;
  
  CreateContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  CreateContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  CreateContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  CreateContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  createContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  createContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  createContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  createContainer(argument: _nri_pkg_api_v1alpha1_CreateContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_CreateContainerResponse__Output>): grpc.ClientUnaryCall;
  
  RemoveContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemoveContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemoveContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemoveContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removeContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removeContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removeContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removeContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  
  RemovePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemovePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemovePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  RemovePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  removePodSandbox(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  
  Shutdown(argument: _nri_pkg_api_v1alpha1_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  Shutdown(argument: _nri_pkg_api_v1alpha1_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  Shutdown(argument: _nri_pkg_api_v1alpha1_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  Shutdown(argument: _nri_pkg_api_v1alpha1_Empty, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  shutdown(argument: _nri_pkg_api_v1alpha1_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  shutdown(argument: _nri_pkg_api_v1alpha1_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  shutdown(argument: _nri_pkg_api_v1alpha1_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  shutdown(argument: _nri_pkg_api_v1alpha1_Empty, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  
  StateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  StateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  StateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  StateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  stateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  stateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  stateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  stateChange(argument: _nri_pkg_api_v1alpha1_StateChangeEvent, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_Empty__Output>): grpc.ClientUnaryCall;
  
  StopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  StopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  StopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  StopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  stopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  stopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  stopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  stopContainer(argument: _nri_pkg_api_v1alpha1_ContainerRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_StopContainerResponse__Output>): grpc.ClientUnaryCall;
  
  Synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  Synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  Synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  Synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  synchronize(argument: _nri_pkg_api_v1alpha1_SynchronizeRequest, callback: grpc.requestCallback<_nri_pkg_api_v1alpha1_SynchronizeResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface PluginHandlers extends grpc.UntypedServiceImplementation {
  Configure: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_ConfigureRequest__Output, _nri_pkg_api_v1alpha1_ConfigureResponse>;
  
  CreateContainer: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_CreateContainerRequest__Output, _nri_pkg_api_v1alpha1_CreateContainerResponse>;
  
  RemoveContainer: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_Empty>;
  
  RemovePodSandbox: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_Empty>;
  
  Shutdown: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_Empty__Output, _nri_pkg_api_v1alpha1_Empty>;
  
  StateChange: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_StateChangeEvent__Output, _nri_pkg_api_v1alpha1_Empty>;
  
  StopContainer: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_StopContainerResponse>;
  
  Synchronize: grpc.handleUnaryCall<_nri_pkg_api_v1alpha1_SynchronizeRequest__Output, _nri_pkg_api_v1alpha1_SynchronizeResponse>;
  
}

export interface PluginDefinition extends grpc.ServiceDefinition {
  Configure: MethodDefinition<_nri_pkg_api_v1alpha1_ConfigureRequest, _nri_pkg_api_v1alpha1_ConfigureResponse, _nri_pkg_api_v1alpha1_ConfigureRequest__Output, _nri_pkg_api_v1alpha1_ConfigureResponse__Output>
  CreateContainer: MethodDefinition<_nri_pkg_api_v1alpha1_CreateContainerRequest, _nri_pkg_api_v1alpha1_CreateContainerResponse, _nri_pkg_api_v1alpha1_CreateContainerRequest__Output, _nri_pkg_api_v1alpha1_CreateContainerResponse__Output>
  RemoveContainer: MethodDefinition<_nri_pkg_api_v1alpha1_ContainerRequest, _nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_Empty__Output>
  RemovePodSandbox: MethodDefinition<_nri_pkg_api_v1alpha1_ContainerRequest, _nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_Empty__Output>
  Shutdown: MethodDefinition<_nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_Empty__Output, _nri_pkg_api_v1alpha1_Empty__Output>
  StateChange: MethodDefinition<_nri_pkg_api_v1alpha1_StateChangeEvent, _nri_pkg_api_v1alpha1_Empty, _nri_pkg_api_v1alpha1_StateChangeEvent__Output, _nri_pkg_api_v1alpha1_Empty__Output>
  StopContainer: MethodDefinition<_nri_pkg_api_v1alpha1_ContainerRequest, _nri_pkg_api_v1alpha1_StopContainerResponse, _nri_pkg_api_v1alpha1_ContainerRequest__Output, _nri_pkg_api_v1alpha1_StopContainerResponse__Output>
  Synchronize: MethodDefinition<_nri_pkg_api_v1alpha1_SynchronizeRequest, _nri_pkg_api_v1alpha1_SynchronizeResponse, _nri_pkg_api_v1alpha1_SynchronizeRequest__Output, _nri_pkg_api_v1alpha1_SynchronizeResponse__Output>
}
