// Original file: proto/node.proto


export interface NodeProcessesRequest {
  'allocation'?: (string);
}

export interface NodeProcessesRequest__Output {
  'allocation': (string);
}
