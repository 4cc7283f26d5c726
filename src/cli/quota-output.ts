import type { Option } from 'commander';
import type { Format } from '../quota/command/replay.js';
import { outputOption, printItem, type Output } from './output.js';

/** `-o` of the commands of quota. */
export interface QuotaOutput {
  readonly output: Output;
}

export function quotaOutputOption(): Option {
  return outputOption();
}

/** The quota engine's format for this output: its tables, or lines of JSON, from which YAML is made. */
export function formatOf(output: Output): Format {
  return output === 'json' || output === 'yaml' ? 'json' : 'table';
}

/** Prints a text of the quota engine that was made in {@link formatOf} this output. */
export async function printQuota(output: Output, text: string): Promise<void> {
  if (output !== 'yaml') {
    process.stdout.write(text);
    return;
  }
  for (const line of text.split('\n').filter((each) => each !== ''))
    await printItem(output, { document: () => JSON.parse(line) as unknown, table: () => line });
}
