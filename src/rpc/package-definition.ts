import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import type { MessageTypeDefinition, PackageDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs';

/**
 * Messages keep the protocol's field names, 64-bit numbers are strings, enumerations are names, and absent fields have
 * their defaults: the options for which `npm run proto` generates types.
 */
const PARSE = { keepCase: true };
const CONVERSION = { longs: String, enums: String, defaults: true };

type Declaration = protobuf.Type | protobuf.Service;

/**
 * The services and messages of a `.proto` file, with what grpc-js reads of them. proto-loader also makes descriptors
 * for server reflection, which no server of ours offers, and which take longer than all the rest.
 */
export function packageDefinition(text: string): PackageDefinition {
  const { root } = protobuf.parse(text, new protobuf.Root(), PARSE);
  root.resolveAll();
  const definitions = declarations(root).map((found) => [found.fullName.slice(1), definition(found)] as const);
  return Object.fromEntries(definitions) as PackageDefinition;
}

function declarations(namespace: protobuf.NamespaceBase): Declaration[] {
  return namespace.nestedArray.flatMap((found) => {
    if (found instanceof protobuf.Type || found instanceof protobuf.Service) return [found];
    return found instanceof protobuf.Namespace ? declarations(found) : [];
  });
}

function definition(found: Declaration): MessageTypeDefinition<object, object> | ServiceDefinition {
  return found instanceof protobuf.Type ? messageDefinition(found) : serviceDefinition(found);
}

function serviceDefinition(service: protobuf.Service): ServiceDefinition {
  return Object.fromEntries(service.methodsArray.map((method) => [method.name, methodDefinition(service, method)]));
}

function methodDefinition(service: protobuf.Service, method: protobuf.Method): MethodDefinition<object, object> {
  const [request, response] = [codec(method.resolvedRequestType), codec(method.resolvedResponseType)];
  return {
    path: `/${service.fullName.slice(1)}/${method.name}`,
    requestStream: method.requestStream === true,
    responseStream: method.responseStream === true,
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize,
    responseSerialize: response.serialize,
    responseDeserialize: response.deserialize,
    originalName: method.name.charAt(0).toLowerCase() + method.name.slice(1),
  };
}

/** grpc-js tells a message from a service by its format; the descriptor is for reflection. */
function messageDefinition(type: protobuf.Type): MessageTypeDefinition<object, object> {
  return { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos: [], ...codec(type) };
}

interface Codec {
  readonly serialize: (message: object) => Buffer;
  readonly deserialize: (bytes: Buffer) => object;
}

function codec(type: protobuf.Type | null): Codec {
  if (type === null) throw new Error('a method of a service without a message type');
  return {
    serialize: (message) => Buffer.from(type.encode(type.fromObject(message)).finish()),
    deserialize: (bytes) => type.toObject(type.decode(bytes), CONVERSION),
  };
}
