// Original file: proto/vcuda.proto


export interface VDeviceRequest {
  'bus_id'?: (string);
  'pod_uid'?: (string);
  'container_name'?: (string);
  'container_id'?: (string);
}

export interface VDeviceRequest__Output {
  'bus_id': (string);
  'pod_uid': (string);
  'container_name': (string);
  'container_id': (string);
}
