import { Command } from 'commander';
import { buildClaimWebhook } from '../claim-webhook/run.js';
import type { LogLevel } from '../host/log.js';
import { logLevelOption, serveUntilSignal } from './serve.js';
import { addWebhookFlags, webhookConfigOf, type WebhookOptions } from './webhook-flags.js';

interface Options extends WebhookOptions {
  readonly logLevel: LogLevel;
}

/** `gpu-manager claim-webhook`: the webhooks of resource claims. */
export function claimWebhookCommand(): Command {
  const command = new Command('claim-webhook').description(
    'serve the webhooks of resource claims: early checks of parameters, and conversion of pods that ask for vcuda-core',
  );
  return addWebhookFlags(command, 'gpu-manager-claims').addOption(logLevelOption()).action(serve);
}

async function serve(options: Options): Promise<void> {
  await serveUntilSignal(options.logLevel, (log) => buildClaimWebhook(webhookConfigOf(options), log));
}
