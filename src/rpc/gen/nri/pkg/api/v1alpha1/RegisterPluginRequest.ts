// Original file: proto/nri-v1alpha1.proto


export interface RegisterPluginRequest {
  'plugin_name'?: (string);
  'plugin_idx'?: (string);
  'NRI_version'?: (string);
}

export interface RegisterPluginRequest__Output {
  'plugin_name': (string);
  'plugin_idx': (string);
  'NRI_version': (string);
}
