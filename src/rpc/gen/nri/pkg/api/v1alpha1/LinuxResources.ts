// Original file: proto/nri-v1alpha1.proto

import type { LinuxCPU as _nri_pkg_api_v1alpha1_LinuxCPU, LinuxCPU__Output as _nri_pkg_api_v1alpha1_LinuxCPU__Output } from '../../../../nri/pkg/api/v1alpha1/LinuxCPU.js';

export interface LinuxResources {
  'cpu'?: (_nri_pkg_api_v1alpha1_LinuxCPU | null);
}

export interface LinuxResources__Output {
  'cpu': (_nri_pkg_api_v1alpha1_LinuxCPU__Output | null);
}
