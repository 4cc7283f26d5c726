// Original file: proto/pluginregistration-v1.proto


export interface PluginInfo {
  'type'?: (string);
  'name'?: (string);
  'endpoint'?: (string);
  'supported_versions'?: (string)[];
}

export interface PluginInfo__Output {
  'type': (string);
  'name': (string);
  'endpoint': (string);
  'supported_versions': (string)[];
}
