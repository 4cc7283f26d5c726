// Original file: proto/dra-health-v1alpha1.proto

import type { DeviceHealth as _v1alpha1_DeviceHealth, DeviceHealth__Output as _v1alpha1_DeviceHealth__Output } from '../v1alpha1/DeviceHealth.js';

export interface NodeWatchResourcesResponse {
  'devices'?: (_v1alpha1_DeviceHealth)[];
}

export interface NodeWatchResourcesResponse__Output {
  'devices': (_v1alpha1_DeviceHealth__Output)[];
}
