import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import type { PrometheusOptions } from '../console/prometheus.js';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import { httpUrl } from './flag-values.js';

/** Options that name a Prometheus. */
export interface PrometheusFlags {
  readonly prometheusUrl?: URL;
  readonly prometheusCaFile?: string;
  readonly prometheusTokenFile?: string;
}

/** Adds them to a command; `purpose` is what it does with that Prometheus. */
export function addPrometheusOptions(command: Command, purpose: string): Command {
  return command
    .addOption(new Option('--prometheus-url <url>', purpose).argParser(httpUrl))
    .option('--prometheus-ca-file <file>', 'certificate authorities of Prometheus (PEM)')
    .option('--prometheus-token-file <file>', 'bearer token for Prometheus, read for every query');
}

/** The Prometheus that the options name; null without one. Throws a `StartupError` for files that cannot be read. */
export async function prometheusOf(flags: PrometheusFlags): Promise<PrometheusOptions | null> {
  const { prometheusUrl: url, prometheusCaFile: caFile = null, prometheusTokenFile: tokenFile = null } = flags;
  for (const [flag, file] of [
    ['--prometheus-ca-file', caFile],
    ['--prometheus-token-file', tokenFile],
  ] as const) {
    if (file === null) continue;
    if (url === undefined) throw new StartupError(`${flag} needs --prometheus-url`);
    await access(file, constants.R_OK).catch((error: unknown) => {
      throw new StartupError(`${flag} cannot be read: ${fileReason(error)}`);
    });
  }
  return url === undefined ? null : { url, caFile, tokenFile };
}
