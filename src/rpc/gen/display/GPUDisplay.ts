// Original file: proto/display.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { Empty as _display_Empty, Empty__Output as _display_Empty__Output } from '../display/Empty.js';
import type { GraphResponse as _display_GraphResponse, GraphResponse__Output as _display_GraphResponse__Output } from '../display/GraphResponse.js';
import type { UsageResponse as _display_UsageResponse, UsageResponse__Output as _display_UsageResponse__Output } from '../display/UsageResponse.js';
import type { VersionResponse as _display_VersionResponse, VersionResponse__Output as _display_VersionResponse__Output } from '../display/VersionResponse.js';

export interface GPUDisplayClient extends grpc.Client {
  PrintGraph(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  PrintGraph(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  PrintGraph(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  PrintGraph(argument: _display_Empty, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  printGraph(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  printGraph(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  printGraph(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  printGraph(argument: _display_Empty, callback: grpc.requestCallback<_display_GraphResponse__Output>): grpc.ClientUnaryCall;
  
  PrintUsages(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  PrintUsages(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  PrintUsages(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  PrintUsages(argument: _display_Empty, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  printUsages(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  printUsages(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  printUsages(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  printUsages(argument: _display_Empty, callback: grpc.requestCallback<_display_UsageResponse__Output>): grpc.ClientUnaryCall;
  
  Version(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  Version(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  Version(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  Version(argument: _display_Empty, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  version(argument: _display_Empty, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  version(argument: _display_Empty, metadata: grpc.Metadata, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  version(argument: _display_Empty, options: grpc.CallOptions, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  version(argument: _display_Empty, callback: grpc.requestCallback<_display_VersionResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface GPUDisplayHandlers extends grpc.UntypedServiceImplementation {
  PrintGraph: grpc.handleUnaryCall<_display_Empty__Output, _display_GraphResponse>;
  
  PrintUsages: grpc.handleUnaryCall<_display_Empty__Output, _display_UsageResponse>;
  
  Version: grpc.handleUnaryCall<_display_Empty__Output, _display_VersionResponse>;
  
}

export interface GPUDisplayDefinition extends grpc.ServiceDefinition {
  PrintGraph: MethodDefinition<_display_Empty, _display_GraphResponse, _display_Empty__Output, _display_GraphResponse__Output>
  PrintUsages: MethodDefinition<_display_Empty, _display_UsageResponse, _display_Empty__Output, _display_UsageResponse__Output>
  Version: MethodDefinition<_display_Empty, _display_VersionResponse, _display_Empty__Output, _display_VersionResponse__Output>
}
