// Original file: proto/limits.proto


export interface ReleaseLimitsRequest {
  'allocation'?: (string);
}

export interface ReleaseLimitsRequest__Output {
  'allocation': (string);
}
