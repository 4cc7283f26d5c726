// Original file: proto/deviceplugin-v1beta1.proto


export interface ContainerPreferredAllocationResponse {
  'deviceIDs'?: (string)[];
}

export interface ContainerPreferredAllocationResponse__Output {
  'deviceIDs': (string)[];
}
