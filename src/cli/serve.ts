import { Option } from 'commander';
import { keptAlive } from '../host/keep-alive.js';
import { Lifecycle, type Part } from '../host/lifecycle.js';
import { createLog, type Log, type LogLevel } from '../host/log.js';
import { stopSignal } from './stop-signal.js';

/** The option `--log-level` of the commands that serve. */
export function logLevelOption(): Option {
  return new Option('--log-level <level>', 'log level')
    .choices(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info');
}

/** Starts the parts that `build` returns, waits for SIGTERM or SIGINT, and stops them in reverse order. */
export async function serveUntilSignal(level: LogLevel, build: (log: Log) => Promise<readonly Part[]>): Promise<void> {
  const log = createLog(level);
  const stopped = stopSignal();
  const lifecycle = new Lifecycle(await build(log), log);
  await lifecycle.start();
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await lifecycle.stop();
  });
}
