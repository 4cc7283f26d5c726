// Original file: proto/deviceplugin-v1beta1.proto

import type { ContainerAllocateResponse as _v1beta1_ContainerAllocateResponse, ContainerAllocateResponse__Output as _v1beta1_ContainerAllocateResponse__Output } from '../v1beta1/ContainerAllocateResponse.js';

export interface AllocateResponse {
  'container_responses'?: (_v1beta1_ContainerAllocateResponse)[];
}

export interface AllocateResponse__Output {
  'container_responses': (_v1beta1_ContainerAllocateResponse__Output)[];
}
