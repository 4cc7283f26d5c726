// Original file: proto/deviceplugin-v1beta1.proto


export interface Mount {
  'container_path'?: (string);
  'host_path'?: (string);
  'read_only'?: (boolean);
}

export interface Mount__Output {
  'container_path': (string);
  'host_path': (string);
  'read_only': (boolean);
}
