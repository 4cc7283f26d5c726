// Original file: proto/podresources-v1.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ListPodResourcesRequest as _v1_ListPodResourcesRequest, ListPodResourcesRequest__Output as _v1_ListPodResourcesRequest__Output } from '../v1/ListPodResourcesRequest.js';
import type { ListPodResourcesResponse as _v1_ListPodResourcesResponse, ListPodResourcesResponse__Output as _v1_ListPodResourcesResponse__Output } from '../v1/ListPodResourcesResponse.js';

export interface PodResourcesListerClient extends grpc.Client {
  List(argument: _v1_ListPodResourcesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _v1_ListPodResourcesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _v1_ListPodResourcesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  List(argument: _v1_ListPodResourcesRequest, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _v1_ListPodResourcesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _v1_ListPodResourcesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _v1_ListPodResourcesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  list(argument: _v1_ListPodResourcesRequest, callback: grpc.requestCallback<_v1_ListPodResourcesResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface PodResourcesListerHandlers extends grpc.UntypedServiceImplementation {
  List: grpc.handleUnaryCall<_v1_ListPodResourcesRequest__Output, _v1_ListPodResourcesResponse>;
  
}

export interface PodResourcesListerDefinition extends grpc.ServiceDefinition {
  List: MethodDefinition<_v1_ListPodResourcesRequest, _v1_ListPodResourcesResponse, _v1_ListPodResourcesRequest__Output, _v1_ListPodResourcesResponse__Output>
}
