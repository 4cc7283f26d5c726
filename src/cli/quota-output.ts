import { InvalidArgumentError, Option } from 'commander';
import type { Format } from '../quota/command/replay.js';

/** `-o` of the commands of quota. */
export interface QuotaOutput {
  readonly output: Format;
}

export function quotaOutputOption(): Option {
  return new Option('-o, --output <format>', 'table or json').default('table').argParser((value: string): Format => {
    if (value !== 'table' && value !== 'json') throw new InvalidArgumentError('expected table or json');
    return value;
  });
}

/** Options of the commands that read a cluster. */
export const QUOTA_KUBECONFIG = [
  '--kubeconfig <file>',
  'access to the API server; without it, what kubectl would use',
] as const;
