// Original file: proto/limits.proto

import type { ContainerLimits as _vgpu_ContainerLimits, ContainerLimits__Output as _vgpu_ContainerLimits__Output } from '../vgpu/ContainerLimits.js';

export interface ListLimitsResponse {
  'containers'?: (_vgpu_ContainerLimits)[];
}

export interface ListLimitsResponse__Output {
  'containers': (_vgpu_ContainerLimits__Output)[];
}
