import type { Option } from 'commander';
import type { KubeApi } from '../kube/client.js';
import type { ClusterAccess } from '../kube/open-client.js';
import { openClusterLedger, withClient } from '../quota-controller/ledger/open-cluster-ledger.js';
import type { Format } from '../quota-command/replay.js';
import type { Quota } from '../quota/index.js';
import { isDocument, outputOption, print, printItem, type Output } from './output.js';
import { watch } from './watch.js';

/** Options of the commands that show the ledger of a cluster. */
export interface LedgerOptions extends QuotaOutput, ClusterAccess {
  readonly watch?: true;
}

/** `-o` of the commands of quota. */
export interface QuotaOutput {
  readonly output: Output;
}

export function quotaOutputOption(): Option {
  return outputOption();
}

/** The quota engine's format for this output: its tables, or lines of JSON, from which YAML is made. */
export function formatOf(output: Output): Format {
  return isDocument(output) ? 'json' : 'table';
}

/** Prints a text of the quota engine in the format {@link formatOf} of this output. */
export async function printQuota(output: Output, text: string): Promise<void> {
  if (output === 'json' || formatOf(output) === 'table') {
    process.stdout.write(text);
    return;
  }
  const lines = text.split('\n').filter((each) => each !== '');
  if (output !== 'yaml') {
    await print(output, { document: () => lines.map((line) => JSON.parse(line) as unknown), table: () => text });
    return;
  }
  for (const line of lines) await printItem(output, { document: () => JSON.parse(line) as unknown, table: () => line });
}

/**
 * Prints a text of a cluster's ledger in the format {@link formatOf} of the output; with `--watch`, again whenever it
 * changes.
 */
export async function printLedger(
  options: LedgerOptions,
  textOf: (ledger: Quota, api: KubeApi) => string | Promise<string>,
): Promise<void> {
  const { output, watch: isWatched, ...access } = options;
  await withClient(access, async (client) => {
    const api: KubeApi = { request: (request) => client.request(request) };
    const read = async (): Promise<string> => textOf(await openClusterLedger(api), api);
    const first = await read();
    let shown = '';
    const show = async (text: string): Promise<void> => {
      if (text === shown) return;
      if (shown !== '' && formatOf(output) === 'table') process.stdout.write('\n');
      await printQuota(output, text);
      shown = text;
    };
    await (isWatched === true ? watch(first, read, show) : show(first));
  });
}
