// Original file: proto/display.proto


export interface DeviceInfo {
  'id'?: (string);
  'card_idx'?: (string);
  'gpu'?: (number | string);
  'mem'?: (number | string);
  'pids'?: (number)[];
  'device_mem'?: (number | string);
}

export interface DeviceInfo__Output {
  'id': (string);
  'card_idx': (string);
  'gpu': (number);
  'mem': (number);
  'pids': (number)[];
  'device_mem': (number);
}
