// Original file: proto/limits.proto


export interface SetLimitsResponse {
  'notes'?: (string)[];
}

export interface SetLimitsResponse__Output {
  'notes': (string)[];
}
