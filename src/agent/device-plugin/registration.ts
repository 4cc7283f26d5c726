import { credentials } from '@grpc/grpc-js';
import { devicePluginProto } from '../../rpc/proto.js';
import { callUnary } from '../../rpc/unary.js';
import { CALL_PATIENCE_MS, PLUGIN_OPTIONS, type PluginResource } from './plugin-server.js';

const API_VERSION = 'v1beta1';

/**
 * Registers one resource with the kubelet. Rejects with grpc-js's ServiceError when the kubelet refuses or does not
 * answer within 30 s.
 */
export async function register(
  kubeletSocket: string,
  { resource, socket }: Pick<PluginResource, 'resource' | 'socket'>,
): Promise<void> {
  const { Registration } = devicePluginProto().v1beta1;
  const client = new Registration(`unix:${kubeletSocket}`, credentials.createInsecure());
  try {
    await callUnary(
      client,
      'Register',
      {
        version: API_VERSION,
        endpoint: socket,
        resource_name: resource,
        options: PLUGIN_OPTIONS,
      },
      CALL_PATIENCE_MS,
    );
  } finally {
    client.close();
  }
}
