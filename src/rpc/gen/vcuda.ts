import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { VCUDAServiceClient as _vcuda_VCUDAServiceClient, VCUDAServiceDefinition as _vcuda_VCUDAServiceDefinition } from './vcuda/VCUDAService.js';
import type { VDeviceRequest as _vcuda_VDeviceRequest, VDeviceRequest__Output as _vcuda_VDeviceRequest__Output } from './vcuda/VDeviceRequest.js';
import type { VDeviceResponse as _vcuda_VDeviceResponse, VDeviceResponse__Output as _vcuda_VDeviceResponse__Output } from './vcuda/VDeviceResponse.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  vcuda: {
    VCUDAService: SubtypeConstructor<typeof grpc.Client, _vcuda_VCUDAServiceClient> & { service: _vcuda_VCUDAServiceDefinition }
    VDeviceRequest: MessageTypeDefinition<_vcuda_VDeviceRequest, _vcuda_VDeviceRequest__Output>
    VDeviceResponse: MessageTypeDefinition<_vcuda_VDeviceResponse, _vcuda_VDeviceResponse__Output>
  }
}

