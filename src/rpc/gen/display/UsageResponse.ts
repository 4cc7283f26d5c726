// Original file: proto/display.proto

import type { ContainerStat as _display_ContainerStat, ContainerStat__Output as _display_ContainerStat__Output } from '../display/ContainerStat.js';

export interface UsageResponse {
  'usage'?: ({[key: string]: _display_ContainerStat});
}

export interface UsageResponse__Output {
  'usage': ({[key: string]: _display_ContainerStat__Output});
}
