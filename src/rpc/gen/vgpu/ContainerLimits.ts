// Original file: proto/limits.proto

import type { DeviceLimits as _vgpu_DeviceLimits, DeviceLimits__Output as _vgpu_DeviceLimits__Output } from '../vgpu/DeviceLimits.js';

export interface ContainerLimits {
  'allocation'?: (string);
  'pod_uid'?: (string);
  'namespace'?: (string);
  'pod'?: (string);
  'container'?: (string);
  'devices'?: (_vgpu_DeviceLimits)[];
  'set_by_operator'?: (boolean);
  'unenforced'?: (boolean);
}

export interface ContainerLimits__Output {
  'allocation': (string);
  'pod_uid': (string);
  'namespace': (string);
  'pod': (string);
  'container': (string);
  'devices': (_vgpu_DeviceLimits__Output)[];
  'set_by_operator': (boolean);
  'unenforced': (boolean);
}
