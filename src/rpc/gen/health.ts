import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { ClearHealthRequest as _vgpu_ClearHealthRequest, ClearHealthRequest__Output as _vgpu_ClearHealthRequest__Output } from './vgpu/ClearHealthRequest.js';
import type { ClearHealthResponse as _vgpu_ClearHealthResponse, ClearHealthResponse__Output as _vgpu_ClearHealthResponse__Output } from './vgpu/ClearHealthResponse.js';
import type { GpuHealth as _vgpu_GpuHealth, GpuHealth__Output as _vgpu_GpuHealth__Output } from './vgpu/GpuHealth.js';
import type { HealthClient as _vgpu_HealthClient, HealthDefinition as _vgpu_HealthDefinition } from './vgpu/Health.js';
import type { HealthChange as _vgpu_HealthChange, HealthChange__Output as _vgpu_HealthChange__Output } from './vgpu/HealthChange.js';
import type { ListHealthRequest as _vgpu_ListHealthRequest, ListHealthRequest__Output as _vgpu_ListHealthRequest__Output } from './vgpu/ListHealthRequest.js';
import type { ListHealthResponse as _vgpu_ListHealthResponse, ListHealthResponse__Output as _vgpu_ListHealthResponse__Output } from './vgpu/ListHealthResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  vgpu: {
    ClearHealthRequest: MessageTypeDefinition<_vgpu_ClearHealthRequest, _vgpu_ClearHealthRequest__Output>
    ClearHealthResponse: MessageTypeDefinition<_vgpu_ClearHealthResponse, _vgpu_ClearHealthResponse__Output>
    GpuHealth: MessageTypeDefinition<_vgpu_GpuHealth, _vgpu_GpuHealth__Output>
    Health: SubtypeConstructor<typeof grpc.Client, _vgpu_HealthClient> & { service: _vgpu_HealthDefinition }
    HealthChange: MessageTypeDefinition<_vgpu_HealthChange, _vgpu_HealthChange__Output>
    ListHealthRequest: MessageTypeDefinition<_vgpu_ListHealthRequest, _vgpu_ListHealthRequest__Output>
    ListHealthResponse: MessageTypeDefinition<_vgpu_ListHealthResponse, _vgpu_ListHealthResponse__Output>
  }
}

