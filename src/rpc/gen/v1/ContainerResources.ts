// Original file: proto/podresources-v1.proto

import type { ContainerDevices as _v1_ContainerDevices, ContainerDevices__Output as _v1_ContainerDevices__Output } from '../v1/ContainerDevices.js';

export interface ContainerResources {
  'name'?: (string);
  'devices'?: (_v1_ContainerDevices)[];
}

export interface ContainerResources__Output {
  'name': (string);
  'devices': (_v1_ContainerDevices__Output)[];
}
