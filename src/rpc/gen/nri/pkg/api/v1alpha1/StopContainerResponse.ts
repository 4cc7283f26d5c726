// Original file: proto/nri-v1alpha1.proto

import type { ContainerUpdate as _nri_pkg_api_v1alpha1_ContainerUpdate, ContainerUpdate__Output as _nri_pkg_api_v1alpha1_ContainerUpdate__Output } from '../../../../nri/pkg/api/v1alpha1/ContainerUpdate.js';

export interface StopContainerResponse {
  'update'?: (_nri_pkg_api_v1alpha1_ContainerUpdate)[];
}

export interface StopContainerResponse__Output {
  'update': (_nri_pkg_api_v1alpha1_ContainerUpdate__Output)[];
}
