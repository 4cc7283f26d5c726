// Original file: proto/deviceplugin-v1beta1.proto

import type { ContainerPreferredAllocationResponse as _v1beta1_ContainerPreferredAllocationResponse, ContainerPreferredAllocationResponse__Output as _v1beta1_ContainerPreferredAllocationResponse__Output } from '../v1beta1/ContainerPreferredAllocationResponse.js';

export interface PreferredAllocationResponse {
  'container_responses'?: (_v1beta1_ContainerPreferredAllocationResponse)[];
}

export interface PreferredAllocationResponse__Output {
  'container_responses': (_v1beta1_ContainerPreferredAllocationResponse__Output)[];
}
