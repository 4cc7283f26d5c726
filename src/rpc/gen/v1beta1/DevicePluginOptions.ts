// Original file: proto/deviceplugin-v1beta1.proto


export interface DevicePluginOptions {
  'pre_start_required'?: (boolean);
  'get_preferred_allocation_available'?: (boolean);
}

export interface DevicePluginOptions__Output {
  'pre_start_required': (boolean);
  'get_preferred_allocation_available': (boolean);
}
