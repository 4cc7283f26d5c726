// Original file: proto/nri-v1alpha1.proto

import type { ContainerState as _nri_pkg_api_v1alpha1_ContainerState, ContainerState__Output as _nri_pkg_api_v1alpha1_ContainerState__Output } from '../../../../nri/pkg/api/v1alpha1/ContainerState.js';
import type { Mount as _nri_pkg_api_v1alpha1_Mount, Mount__Output as _nri_pkg_api_v1alpha1_Mount__Output } from '../../../../nri/pkg/api/v1alpha1/Mount.js';
import type { LinuxContainer as _nri_pkg_api_v1alpha1_LinuxContainer, LinuxContainer__Output as _nri_pkg_api_v1alpha1_LinuxContainer__Output } from '../../../../nri/pkg/api/v1alpha1/LinuxContainer.js';

export interface Container {
  'id'?: (string);
  'pod_sandbox_id'?: (string);
  'name'?: (string);
  'state'?: (_nri_pkg_api_v1alpha1_ContainerState);
  'env'?: (string)[];
  'mounts'?: (_nri_pkg_api_v1alpha1_Mount)[];
  'linux'?: (_nri_pkg_api_v1alpha1_LinuxContainer | null);
}

export interface Container__Output {
  'id': (string);
  'pod_sandbox_id': (string);
  'name': (string);
  'state': (_nri_pkg_api_v1alpha1_ContainerState__Output);
  'env': (string)[];
  'mounts': (_nri_pkg_api_v1alpha1_Mount__Output)[];
  'linux': (_nri_pkg_api_v1alpha1_LinuxContainer__Output | null);
}
