// Original file: proto/nri-v1alpha1.proto


export interface LinuxCPU {
  'cpus'?: (string);
  'mems'?: (string);
}

export interface LinuxCPU__Output {
  'cpus': (string);
  'mems': (string);
}
