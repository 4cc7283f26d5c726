// Original file: proto/deviceplugin-v1beta1.proto


export interface PreStartContainerRequest {
  'devicesIDs'?: (string)[];
}

export interface PreStartContainerRequest__Output {
  'devicesIDs': (string)[];
}
