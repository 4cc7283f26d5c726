import { Command, Option } from 'commander';
import { buildPluginProxy } from '../agent/device-plugin/proxy/build-proxy.js';
import { systemClock } from '../host/clock.js';
import { keptAlive } from '../host/keep-alive.js';
import { createLog, type LogLevel } from '../host/log.js';
import { secondsBetween } from './flag-values.js';
import { logLevelOption } from './serve.js';
import { stopSignal } from './stop-signal.js';

interface Options {
  readonly devicePluginPath: string;
  readonly pluginProxyPath: string;
  readonly agentTimeout: number;
  readonly logLevel: LogLevel;
}

/** `gpu-manager plugin-proxy`: keeps the kubelet's connection to the device plugins while agents are replaced. */
export function pluginProxyCommand(): Command {
  return new Command('plugin-proxy')
    .description('keep the device plugins registered with the kubelet while the agent is restarted or upgraded')
    .allowExcessArguments(false)
    .option(
      '--device-plugin-path <dir>',
      "directory of the kubelet's socket and of the plugin sockets",
      '/var/lib/kubelet/device-plugins',
    )
    .option('--plugin-proxy-path <dir>', 'directory in which agents register', '/var/run/gpu-manager/plugin-proxy')
    .addOption(
      new Option('--agent-timeout <seconds>', 'how long calls of the kubelet wait for an agent that is being replaced')
        .default(10, '10')
        .argParser(secondsBetween(0.1, 300)),
    )
    .addOption(logLevelOption())
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const log = createLog(options.logLevel);
  const stopped = stopSignal();
  const { devicePluginPath, pluginProxyPath, agentTimeout } = options;
  const config = { devicePluginPath, pluginProxyPath, agentTimeoutMs: agentTimeout * 1_000 };
  const proxy = await buildPluginProxy(config, systemClock, log);
  await proxy.start();
  log.info({ agents: pluginProxyPath }, 'the device plugin proxy started');
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await proxy.stop();
  });
}
