import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { ContainerStat as _display_ContainerStat, ContainerStat__Output as _display_ContainerStat__Output } from './display/ContainerStat.js';
import type { DeviceInfo as _display_DeviceInfo, DeviceInfo__Output as _display_DeviceInfo__Output } from './display/DeviceInfo.js';
import type { Devices as _display_Devices, Devices__Output as _display_Devices__Output } from './display/Devices.js';
import type { Empty as _display_Empty, Empty__Output as _display_Empty__Output } from './display/Empty.js';
import type { GPUDisplayClient as _display_GPUDisplayClient, GPUDisplayDefinition as _display_GPUDisplayDefinition } from './display/GPUDisplay.js';
import type { GraphResponse as _display_GraphResponse, GraphResponse__Output as _display_GraphResponse__Output } from './display/GraphResponse.js';
import type { Spec as _display_Spec, Spec__Output as _display_Spec__Output } from './display/Spec.js';
import type { UsageResponse as _display_UsageResponse, UsageResponse__Output as _display_UsageResponse__Output } from './display/UsageResponse.js';
import type { VersionResponse as _display_VersionResponse, VersionResponse__Output as _display_VersionResponse__Output } from './display/VersionResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  display: {
    ContainerStat: MessageTypeDefinition<_display_ContainerStat, _display_ContainerStat__Output>
    DeviceInfo: MessageTypeDefinition<_display_DeviceInfo, _display_DeviceInfo__Output>
    Devices: MessageTypeDefinition<_display_Devices, _display_Devices__Output>
    Empty: MessageTypeDefinition<_display_Empty, _display_Empty__Output>
    GPUDisplay: SubtypeConstructor<typeof grpc.Client, _display_GPUDisplayClient> & { service: _display_GPUDisplayDefinition }
    GraphResponse: MessageTypeDefinition<_display_GraphResponse, _display_GraphResponse__Output>
    Spec: MessageTypeDefinition<_display_Spec, _display_Spec__Output>
    UsageResponse: MessageTypeDefinition<_display_UsageResponse, _display_UsageResponse__Output>
    VersionResponse: MessageTypeDefinition<_display_VersionResponse, _display_VersionResponse__Output>
  }
}

