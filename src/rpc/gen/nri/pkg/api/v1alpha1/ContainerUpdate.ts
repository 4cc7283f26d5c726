// Original file: proto/nri-v1alpha1.proto


export interface ContainerUpdate {
  'container_id'?: (string);
}

export interface ContainerUpdate__Output {
  'container_id': (string);
}
