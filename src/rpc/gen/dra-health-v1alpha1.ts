import type * as grpc from '@grpc/grpc-js';
import type { EnumTypeDefinition, MessageTypeDefinition } from '@grpc/proto-loader';

import type { DRAResourceHealthClient as _v1alpha1_DRAResourceHealthClient, DRAResourceHealthDefinition as _v1alpha1_DRAResourceHealthDefinition } from './v1alpha1/DRAResourceHealth.js';
import type { DeviceHealth as _v1alpha1_DeviceHealth, DeviceHealth__Output as _v1alpha1_DeviceHealth__Output } from './v1alpha1/DeviceHealth.js';
import type { DeviceIdentifier as _v1alpha1_DeviceIdentifier, DeviceIdentifier__Output as _v1alpha1_DeviceIdentifier__Output } from './v1alpha1/DeviceIdentifier.js';
import type { NodeWatchResourcesRequest as _v1alpha1_NodeWatchResourcesRequest, NodeWatchResourcesRequest__Output as _v1alpha1_NodeWatchResourcesRequest__Output } from './v1alpha1/NodeWatchResourcesRequest.js';
import type { NodeWatchResourcesResponse as _v1alpha1_NodeWatchResourcesResponse, NodeWatchResourcesResponse__Output as _v1alpha1_NodeWatchResourcesResponse__Output } from './v1alpha1/NodeWatchResourcesResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  v1alpha1: {
    DRAResourceHealth: SubtypeConstructor<typeof grpc.Client, _v1alpha1_DRAResourceHealthClient> & { service: _v1alpha1_DRAResourceHealthDefinition }
    DeviceHealth: MessageTypeDefinition<_v1alpha1_DeviceHealth, _v1alpha1_DeviceHealth__Output>
    DeviceIdentifier: MessageTypeDefinition<_v1alpha1_DeviceIdentifier, _v1alpha1_DeviceIdentifier__Output>
    HealthStatus: EnumTypeDefinition
    NodeWatchResourcesRequest: MessageTypeDefinition<_v1alpha1_NodeWatchResourcesRequest, _v1alpha1_NodeWatchResourcesRequest__Output>
    NodeWatchResourcesResponse: MessageTypeDefinition<_v1alpha1_NodeWatchResourcesResponse, _v1alpha1_NodeWatchResourcesResponse__Output>
  }
}

