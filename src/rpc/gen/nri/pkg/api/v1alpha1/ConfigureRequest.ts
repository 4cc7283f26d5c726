// Original file: proto/nri-v1alpha1.proto

import type { Long } from '@grpc/proto-loader';

export interface ConfigureRequest {
  'config'?: (string);
  'runtime_name'?: (string);
  'runtime_version'?: (string);
  'registration_timeout'?: (number | string | Long);
  'request_timeout'?: (number | string | Long);
  'NRI_version'?: (string);
}

export interface ConfigureRequest__Output {
  'config': (string);
  'runtime_name': (string);
  'runtime_version': (string);
  'registration_timeout': (string);
  'request_timeout': (string);
  'NRI_version': (string);
}
