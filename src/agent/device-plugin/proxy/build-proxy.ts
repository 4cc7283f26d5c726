import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PLUGIN_SOCKET } from '../plugin-server.js';
import { PluginProxy } from './plugin-proxy.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { StartupError } from '../../../host/startup-error.js';
import { socketPathProblem } from '../../../host/unix-socket.js';

/** The configuration of `gpu-manager plugin-proxy`. */
export interface PluginProxyConfig {
  readonly devicePluginPath: string;
  readonly pluginProxyPath: string;
  readonly agentTimeoutMs: number;
}

/** Builds the device plugin proxy. Rejects with a StartupError when its directories cannot be created. */
export async function buildPluginProxy(config: PluginProxyConfig, clock: Clock, log: Log): Promise<PluginProxy> {
  await checkDirectory('--device-plugin-path', config.devicePluginPath);
  await checkDirectory('--plugin-proxy-path', config.pluginProxyPath);
  return new PluginProxy({
    kubeletDirectory: config.devicePluginPath,
    agentDirectory: config.pluginProxyPath,
    agentTimeoutMs: config.agentTimeoutMs,
    clock,
    log,
  });
}

async function checkDirectory(flag: string, directory: string): Promise<void> {
  const problem = socketPathProblem(join(directory, PLUGIN_SOCKET.memory));
  if (problem !== null) throw new StartupError(`${flag}: ${problem}`);
  try {
    await mkdir(directory, { recursive: true });
  } catch (error) {
    throw new StartupError(`${flag}: ${directory} cannot be created: ${(error as Error).message}`);
  }
}
