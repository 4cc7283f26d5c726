import { Command } from 'commander';
import { buildClaimWebhook, registerClaimWebhooks, type ClaimWebhookConfig } from '../claim-webhook/run.js';
import { createLog, type LogLevel } from '../host/log.js';
import { gpuMemoryOption } from './convert.js';
import { logLevelOption, serveUntilSignal } from './serve.js';
import { addWebhookFlags, webhookConfigOf, type WebhookOptions } from './webhook-flags.js';

interface Options extends WebhookOptions {
  readonly logLevel: LogLevel;
  readonly gpuMemory?: number;
}

/** `gpu-manager claim-webhook`: the webhooks of resource claims. */
export function claimWebhookCommand(): Command {
  const command = new Command('claim-webhook').description(
    'serve the webhooks of resource claims: early checks of parameters, and conversion of pods that ask for vcuda-core, nvidia.com/gpu or shares of HAMi',
  );
  return addWebhookFlags(command, 'gpu-manager-claims')
    .addOption(gpuMemoryOption())
    .addOption(logLevelOption())
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const config = configOf(options);
  if (config.registration === 'once') await registerClaimWebhooks(config, createLog(options.logLevel));
  else await serveUntilSignal(options.logLevel, (log) => buildClaimWebhook(config, log));
}

function configOf(options: Options): ClaimWebhookConfig {
  return { ...webhookConfigOf(options), gpuMemoryBytes: options.gpuMemory ?? null };
}
