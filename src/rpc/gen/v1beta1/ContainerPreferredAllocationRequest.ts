// Original file: proto/deviceplugin-v1beta1.proto


export interface ContainerPreferredAllocationRequest {
  'available_deviceIDs'?: (string)[];
  'must_include_deviceIDs'?: (string)[];
  'allocation_size'?: (number);
}

export interface ContainerPreferredAllocationRequest__Output {
  'available_deviceIDs': (string)[];
  'must_include_deviceIDs': (string)[];
  'allocation_size': (number);
}
