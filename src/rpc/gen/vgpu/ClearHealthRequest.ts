// Original file: proto/health.proto


export interface ClearHealthRequest {
  'uuid'?: (string);
}

export interface ClearHealthRequest__Output {
  'uuid': (string);
}
