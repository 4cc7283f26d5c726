// Original file: proto/dra-health-v1alpha1.proto


export interface DeviceIdentifier {
  'pool_name'?: (string);
  'device_name'?: (string);
}

export interface DeviceIdentifier__Output {
  'pool_name': (string);
  'device_name': (string);
}
