// Original file: proto/nri-v1alpha1.proto


export interface ConfigureResponse {
  'events'?: (number);
}

export interface ConfigureResponse__Output {
  'events': (number);
}
