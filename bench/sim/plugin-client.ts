import { PluginEndpoint } from '../../src/simulation/kubelet/plugin-endpoint.js';

/** A client of the plugin at a socket, and every id that the plugin lists. */
export function connectPlugin(socket: string): Promise<{ endpoint: PluginEndpoint; ids: readonly string[] }> {
  return new Promise((resolve, reject) => {
    const endpoint: PluginEndpoint = new PluginEndpoint(
      socket,
      'localhost',
      (devices) => resolve({ endpoint, ids: devices.map((device) => device.ID) }),
      () => reject(new Error(`nobody listens at ${socket}`)),
    );
  });
}
