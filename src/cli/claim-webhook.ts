import { Command, Option } from 'commander';
import { buildClaimWebhook } from '../claim-webhook/run.js';
import { keptAlive } from '../host/keep-alive.js';
import { Lifecycle } from '../host/lifecycle.js';
import { createLog, type LogLevel } from '../host/log.js';
import { stopSignal } from './stop-signal.js';
import { addWebhookFlags, webhookConfigOf, type WebhookOptions } from './webhook-flags.js';

interface Options extends WebhookOptions {
  readonly logLevel: LogLevel;
}

/** `gpu-manager claim-webhook`: the webhooks of resource claims. */
export function claimWebhookCommand(): Command {
  const command = new Command('claim-webhook').description(
    'serve the webhooks of resource claims: early checks of parameters, and conversion of pods that ask for vcuda-core',
  );
  return addWebhookFlags(command, 'gpu-manager-claims')
    .addOption(
      new Option('--log-level <level>', 'log level')
        .choices(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const log = createLog(options.logLevel);
  const stopped = stopSignal();
  const lifecycle = new Lifecycle(await buildClaimWebhook(webhookConfigOf(options), log), log);
  await lifecycle.start();
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await lifecycle.stop();
  });
}
