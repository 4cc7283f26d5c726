// Original file: proto/dra-v1beta1.proto


export interface NodeUnprepareResourceResponse {
  'error'?: (string);
}

export interface NodeUnprepareResourceResponse__Output {
  'error': (string);
}
