// Original file: proto/display.proto

import type { DeviceInfo as _display_DeviceInfo, DeviceInfo__Output as _display_DeviceInfo__Output } from '../display/DeviceInfo.js';

export interface Devices {
  'dev'?: (_display_DeviceInfo)[];
}

export interface Devices__Output {
  'dev': (_display_DeviceInfo__Output)[];
}
