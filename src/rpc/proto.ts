import { loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { packageFile } from '../host/package-files.js';
import type { ProtoGrpcType as CriProto } from './gen/cri-v1.js';
import type { ProtoGrpcType as DevicePluginProto } from './gen/deviceplugin-v1beta1.js';
import type { ProtoGrpcType as DisplayProto } from './gen/display.js';
import type { ProtoGrpcType as DraHealthV1Proto } from './gen/dra-health-v1.js';
import type { ProtoGrpcType as DraHealthV1alpha1Proto } from './gen/dra-health-v1alpha1.js';
import type { ProtoGrpcType as DraV1Proto } from './gen/dra-v1.js';
import type { ProtoGrpcType as DraV1beta1Proto } from './gen/dra-v1beta1.js';
import type { ProtoGrpcType as HealthProto } from './gen/health.js';
import type { ProtoGrpcType as LimitsProto } from './gen/limits.js';
import type { ProtoGrpcType as NodeProto } from './gen/node.js';
import type { ProtoGrpcType as NriProto } from './gen/nri-v1alpha1.js';
import type { ProtoGrpcType as PluginRegistrationProto } from './gen/pluginregistration-v1.js';
import type { ProtoGrpcType as PodResourcesProto } from './gen/podresources-v1.js';
import type { ProtoGrpcType as TtrpcProto } from './gen/ttrpc.js';
import type { ProtoGrpcType as VcudaProto } from './gen/vcuda.js';

/**
 * Messages keep the protocol's field names, 64-bit numbers are strings, enumerations are names, and absent fields have
 * their defaults: the options for which `npm run proto` generates types.
 */
const OPTIONS = { keepCase: true, longs: String, enums: String, defaults: true };

/** Loads one file of `proto/`, when it is first needed. */
function loadOnce<T>(file: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= loadPackageDefinition(loadSync(packageFile(`proto/${file}`), OPTIONS)) as T);
}

export const devicePluginProto = loadOnce<DevicePluginProto>('deviceplugin-v1beta1.proto');
export const podResourcesProto = loadOnce<PodResourcesProto>('podresources-v1.proto');
export const criProto = loadOnce<CriProto>('cri-v1.proto');
export const vcudaProto = loadOnce<VcudaProto>('vcuda.proto');
export const limitsProto = loadOnce<LimitsProto>('limits.proto');
export const healthProto = loadOnce<HealthProto>('health.proto');
export const nodeProto = loadOnce<NodeProto>('node.proto');
export const displayProto = loadOnce<DisplayProto>('display.proto');
export const draV1Proto = loadOnce<DraV1Proto>('dra-v1.proto');
export const draV1beta1Proto = loadOnce<DraV1beta1Proto>('dra-v1beta1.proto');
export const draHealthV1Proto = loadOnce<DraHealthV1Proto>('dra-health-v1.proto');
export const draHealthV1alpha1Proto = loadOnce<DraHealthV1alpha1Proto>('dra-health-v1alpha1.proto');
export const pluginRegistrationProto = loadOnce<PluginRegistrationProto>('pluginregistration-v1.proto');
export const nriProto = loadOnce<NriProto>('nri-v1alpha1.proto');
export const ttrpcProto = loadOnce<TtrpcProto>('ttrpc.proto');
