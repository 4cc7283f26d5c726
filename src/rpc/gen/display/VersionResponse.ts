// Original file: proto/display.proto


export interface VersionResponse {
  'version'?: (string);
}

export interface VersionResponse__Output {
  'version': (string);
}
