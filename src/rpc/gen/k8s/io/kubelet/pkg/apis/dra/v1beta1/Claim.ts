// Original file: proto/dra-v1beta1.proto


export interface Claim {
  'namespace'?: (string);
  'uid'?: (string);
  'name'?: (string);
}

export interface Claim__Output {
  'namespace': (string);
  'uid': (string);
  'name': (string);
}
