// Original file: proto/deviceplugin-v1beta1.proto


export interface ContainerAllocateRequest {
  'devicesIDs'?: (string)[];
}

export interface ContainerAllocateRequest__Output {
  'devicesIDs': (string)[];
}
