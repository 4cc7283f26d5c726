import { makeGenericClientConstructor, type MethodDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs/light.js';
import { declarations as devicePlugin } from './gen/deviceplugin-v1beta1.declarations.js';
import { declarations as podResources } from './gen/podresources-v1.declarations.js';
import { declarations as cri } from './gen/cri-v1.declarations.js';
import { declarations as vcuda } from './gen/vcuda.declarations.js';
import { declarations as limits } from './gen/limits.declarations.js';
import { declarations as suspend } from './gen/suspend.declarations.js';
import { declarations as health } from './gen/health.declarations.js';
import { declarations as node } from './gen/node.declarations.js';
import { declarations as display } from './gen/display.declarations.js';
import { declarations as draV1 } from './gen/dra-v1.declarations.js';
import { declarations as draHealthV1 } from './gen/dra-health-v1.declarations.js';
import { declarations as draHealthV1alpha1 } from './gen/dra-health-v1alpha1.declarations.js';
import { declarations as pluginRegistration } from './gen/pluginregistration-v1.declarations.js';
import { declarations as nri } from './gen/nri-v1alpha1.declarations.js';
import { declarations as ttrpc } from './gen/ttrpc.declarations.js';
import type { ProtoGrpcType as CriProto } from './gen/cri-v1.js';
import type { ProtoGrpcType as DevicePluginProto } from './gen/deviceplugin-v1beta1.js';
import type { ProtoGrpcType as DisplayProto } from './gen/display.js';
import type { ProtoGrpcType as DraHealthV1Proto } from './gen/dra-health-v1.js';
import type { ProtoGrpcType as DraHealthV1alpha1Proto } from './gen/dra-health-v1alpha1.js';
import type { ProtoGrpcType as DraV1Proto } from './gen/dra-v1.js';
import type { ProtoGrpcType as HealthProto } from './gen/health.js';
import type { ProtoGrpcType as LimitsProto } from './gen/limits.js';
import type { ProtoGrpcType as NodeProto } from './gen/node.js';
import type { ProtoGrpcType as NriProto } from './gen/nri-v1alpha1.js';
import type { ProtoGrpcType as PluginRegistrationProto } from './gen/pluginregistration-v1.js';
import type { ProtoGrpcType as PodResourcesProto } from './gen/podresources-v1.js';
import type { ProtoGrpcType as SuspendProto } from './gen/suspend.js';
import type { ProtoGrpcType as TtrpcProto } from './gen/ttrpc.js';
import type { ProtoGrpcType as VcudaProto } from './gen/vcuda.js';

/**
 * Messages keep the protocol's field names, 64-bit numbers are strings, enumerations are names, and absent fields have
 * their defaults: the options for which `npm run build` generates types.
 */
const OPTIONS = { longs: String, enums: String, defaults: true };

/** Makes what a file of `proto/` declares, when it is first needed: by package, its messages and clients. */
function declaredOnce<T>(declarations: () => object): () => T {
  let declared: T | undefined;
  return () => (declared ??= membersOf(protobuf.Root.fromJSON(declarations()).resolveAll()) as T);
}

function membersOf(parent: protobuf.NamespaceBase): object {
  return Object.fromEntries(parent.nestedArray.map((nested) => [nested.name, definitionOf(nested)]));
}

/** Undefined for an enumeration, whose values are texts. */
function definitionOf(nested: protobuf.ReflectionObject): object | undefined {
  if (nested instanceof protobuf.Type) return messageOf(nested);
  if (nested instanceof protobuf.Service) return clientOf(nested);
  return nested instanceof protobuf.Namespace ? membersOf(nested) : undefined;
}

function clientOf({ fullName, methodsArray }: protobuf.Service): object {
  const name = fullName.slice(1);
  const methods = methodsArray.map((method) => [method.name, methodOf(`/${name}/${method.name}`, method)] as const);
  return makeGenericClientConstructor(Object.fromEntries(methods), name);
}

interface MessageDefinition {
  readonly serialize: (message: object) => Buffer;
  readonly deserialize: (bytes: Buffer) => object;
}

function messageOf(type: protobuf.Type | null): MessageDefinition {
  if (type === null) throw new TypeError('a method has a message that its file does not declare');
  return {
    serialize: (message) => type.encode(type.fromObject(message)).finish() as Buffer,
    deserialize: (bytes) => type.toObject(type.decode(bytes), OPTIONS),
  };
}

function methodOf(path: string, method: protobuf.Method): MethodDefinition<object, object> {
  const [request, response] = [messageOf(method.resolvedRequestType), messageOf(method.resolvedResponseType)];
  return {
    path,
    requestStream: method.requestStream === true,
    responseStream: method.responseStream === true,
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize,
    responseSerialize: response.serialize,
    responseDeserialize: response.deserialize,
  };
}

export const devicePluginProto = declaredOnce<DevicePluginProto>(devicePlugin);
export const podResourcesProto = declaredOnce<PodResourcesProto>(podResources);
export const criProto = declaredOnce<CriProto>(cri);
export const vcudaProto = declaredOnce<VcudaProto>(vcuda);
export const limitsProto = declaredOnce<LimitsProto>(limits);
export const suspendProto = declaredOnce<SuspendProto>(suspend);
export const healthProto = declaredOnce<HealthProto>(health);
export const nodeProto = declaredOnce<NodeProto>(node);
export const displayProto = declaredOnce<DisplayProto>(display);
export const draV1Proto = declaredOnce<DraV1Proto>(draV1);
export const draHealthV1Proto = declaredOnce<DraHealthV1Proto>(draHealthV1);
export const draHealthV1alpha1Proto = declaredOnce<DraHealthV1alpha1Proto>(draHealthV1alpha1);
export const pluginRegistrationProto = declaredOnce<PluginRegistrationProto>(pluginRegistration);
export const nriProto = declaredOnce<NriProto>(nri);
export const ttrpcProto = declaredOnce<TtrpcProto>(ttrpc);
