// Original file: proto/display.proto

import type { Devices as _display_Devices, Devices__Output as _display_Devices__Output } from '../display/Devices.js';
import type { Spec as _display_Spec, Spec__Output as _display_Spec__Output } from '../display/Spec.js';

export interface ContainerStat {
  'stat'?: ({[key: string]: _display_Devices});
  'project'?: (string);
  'user'?: (string);
  'cluster'?: (string);
  'spec'?: ({[key: string]: _display_Spec});
}

export interface ContainerStat__Output {
  'stat': ({[key: string]: _display_Devices__Output});
  'project': (string);
  'user': (string);
  'cluster': (string);
  'spec': ({[key: string]: _display_Spec__Output});
}
