// Original file: proto/display.proto


export interface GraphResponse {
  'graph'?: (string);
}

export interface GraphResponse__Output {
  'graph': (string);
}
