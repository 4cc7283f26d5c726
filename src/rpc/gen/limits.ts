import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { ContainerLimits as _vgpu_ContainerLimits, ContainerLimits__Output as _vgpu_ContainerLimits__Output } from './vgpu/ContainerLimits.js';
import type { DeviceLimits as _vgpu_DeviceLimits, DeviceLimits__Output as _vgpu_DeviceLimits__Output } from './vgpu/DeviceLimits.js';
import type { LimitsClient as _vgpu_LimitsClient, LimitsDefinition as _vgpu_LimitsDefinition } from './vgpu/Limits.js';
import type { ListLimitsRequest as _vgpu_ListLimitsRequest, ListLimitsRequest__Output as _vgpu_ListLimitsRequest__Output } from './vgpu/ListLimitsRequest.js';
import type { ListLimitsResponse as _vgpu_ListLimitsResponse, ListLimitsResponse__Output as _vgpu_ListLimitsResponse__Output } from './vgpu/ListLimitsResponse.js';
import type { ReleaseLimitsRequest as _vgpu_ReleaseLimitsRequest, ReleaseLimitsRequest__Output as _vgpu_ReleaseLimitsRequest__Output } from './vgpu/ReleaseLimitsRequest.js';
import type { SetLimitsRequest as _vgpu_SetLimitsRequest, SetLimitsRequest__Output as _vgpu_SetLimitsRequest__Output } from './vgpu/SetLimitsRequest.js';
import type { SetLimitsResponse as _vgpu_SetLimitsResponse, SetLimitsResponse__Output as _vgpu_SetLimitsResponse__Output } from './vgpu/SetLimitsResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  vgpu: {
    ContainerLimits: MessageTypeDefinition<_vgpu_ContainerLimits, _vgpu_ContainerLimits__Output>
    DeviceLimits: MessageTypeDefinition<_vgpu_DeviceLimits, _vgpu_DeviceLimits__Output>
    Limits: SubtypeConstructor<typeof grpc.Client, _vgpu_LimitsClient> & { service: _vgpu_LimitsDefinition }
    ListLimitsRequest: MessageTypeDefinition<_vgpu_ListLimitsRequest, _vgpu_ListLimitsRequest__Output>
    ListLimitsResponse: MessageTypeDefinition<_vgpu_ListLimitsResponse, _vgpu_ListLimitsResponse__Output>
    ReleaseLimitsRequest: MessageTypeDefinition<_vgpu_ReleaseLimitsRequest, _vgpu_ReleaseLimitsRequest__Output>
    SetLimitsRequest: MessageTypeDefinition<_vgpu_SetLimitsRequest, _vgpu_SetLimitsRequest__Output>
    SetLimitsResponse: MessageTypeDefinition<_vgpu_SetLimitsResponse, _vgpu_SetLimitsResponse__Output>
  }
}

