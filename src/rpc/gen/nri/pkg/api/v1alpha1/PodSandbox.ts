// Original file: proto/nri-v1alpha1.proto


export interface PodSandbox {
  'id'?: (string);
  'name'?: (string);
  'uid'?: (string);
  'namespace'?: (string);
  'annotations'?: ({[key: string]: string});
}

export interface PodSandbox__Output {
  'id': (string);
  'name': (string);
  'uid': (string);
  'namespace': (string);
  'annotations': ({[key: string]: string});
}
