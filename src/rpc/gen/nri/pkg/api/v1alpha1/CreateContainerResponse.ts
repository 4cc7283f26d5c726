// Original file: proto/nri-v1alpha1.proto

import type { ContainerAdjustment as _nri_pkg_api_v1alpha1_ContainerAdjustment, ContainerAdjustment__Output as _nri_pkg_api_v1alpha1_ContainerAdjustment__Output } from '../../../../nri/pkg/api/v1alpha1/ContainerAdjustment.js';

export interface CreateContainerResponse {
  'adjust'?: (_nri_pkg_api_v1alpha1_ContainerAdjustment | null);
}

export interface CreateContainerResponse__Output {
  'adjust': (_nri_pkg_api_v1alpha1_ContainerAdjustment__Output | null);
}
