// Original file: proto/display.proto


export interface Spec {
  'gpu'?: (number | string);
  'mem'?: (number | string);
}

export interface Spec__Output {
  'gpu': (number);
  'mem': (number);
}
