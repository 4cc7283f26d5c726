// Original file: proto/nri-v1alpha1.proto

import type { Mount as _nri_pkg_api_v1alpha1_Mount, Mount__Output as _nri_pkg_api_v1alpha1_Mount__Output } from '../../../../nri/pkg/api/v1alpha1/Mount.js';
import type { KeyValue as _nri_pkg_api_v1alpha1_KeyValue, KeyValue__Output as _nri_pkg_api_v1alpha1_KeyValue__Output } from '../../../../nri/pkg/api/v1alpha1/KeyValue.js';
import type { LinuxContainerAdjustment as _nri_pkg_api_v1alpha1_LinuxContainerAdjustment, LinuxContainerAdjustment__Output as _nri_pkg_api_v1alpha1_LinuxContainerAdjustment__Output } from '../../../../nri/pkg/api/v1alpha1/LinuxContainerAdjustment.js';

export interface ContainerAdjustment {
  'mounts'?: (_nri_pkg_api_v1alpha1_Mount)[];
  'env'?: (_nri_pkg_api_v1alpha1_KeyValue)[];
  'linux'?: (_nri_pkg_api_v1alpha1_LinuxContainerAdjustment | null);
}

export interface ContainerAdjustment__Output {
  'mounts': (_nri_pkg_api_v1alpha1_Mount__Output)[];
  'env': (_nri_pkg_api_v1alpha1_KeyValue__Output)[];
  'linux': (_nri_pkg_api_v1alpha1_LinuxContainerAdjustment__Output | null);
}
