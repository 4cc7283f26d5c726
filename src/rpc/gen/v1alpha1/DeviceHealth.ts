// Original file: proto/dra-health-v1alpha1.proto

import type { DeviceIdentifier as _v1alpha1_DeviceIdentifier, DeviceIdentifier__Output as _v1alpha1_DeviceIdentifier__Output } from '../v1alpha1/DeviceIdentifier.js';
import type { HealthStatus as _v1alpha1_HealthStatus, HealthStatus__Output as _v1alpha1_HealthStatus__Output } from '../v1alpha1/HealthStatus.js';
import type { Long } from '@grpc/proto-loader';

export interface DeviceHealth {
  'device'?: (_v1alpha1_DeviceIdentifier | null);
  'health'?: (_v1alpha1_HealthStatus);
  'last_updated_time'?: (number | string | Long);
  'health_check_timeout_seconds'?: (number | string | Long);
  'message'?: (string);
}

export interface DeviceHealth__Output {
  'device': (_v1alpha1_DeviceIdentifier__Output | null);
  'health': (_v1alpha1_HealthStatus__Output);
  'last_updated_time': (string);
  'health_check_timeout_seconds': (string);
  'message': (string);
}
