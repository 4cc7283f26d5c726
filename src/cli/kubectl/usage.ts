import { Option, type Command } from 'commander';
import { csv } from '../../console/csv.js';
import {
  hoursOfAgents,
  USAGE_BY,
  usageCells,
  usageHeadings,
  type Usage,
  type UsageBy,
  type UsageRow,
} from '../../console/gpu-hours.js';
import { hoursOfPrometheus } from '../../console/prometheus-hours.js';
import { Prometheus, type PrometheusOptions } from '../../console/prometheus.js';
import { outputOption, print, type Output } from '../output.js';
import { addPrometheusOptions, prometheusOf, type PrometheusFlags } from '../prometheus-options.js';
import { table } from '../terminal-text.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuCluster } from './gpu-cluster.js';
import { duration } from './idle.js';

interface UsageOptions extends NamespaceOptions, PrometheusFlags {
  readonly by: UsageBy;
  readonly since: number;
  readonly output: Output | 'csv';
}

/** GPU-hours, and what their source keeps, for people. */
interface Found {
  readonly usage: Usage;
  readonly knowsNoMore: string;
}

/** `kubectl gpu usage`: GPU-hours, from what the agents keep or from Prometheus. */
export function usageCommand(): Command {
  const command = clusterCommand('usage')
    .description('sum up GPU-hours: allocated and used, by namespace, pod, quota group or node, also of ended pods')
    .addOption(namespaceOption('only pods of this namespace; default: all'))
    .addOption(new Option('--by <what>', 'one line for each').choices(USAGE_BY).default('namespace'))
    .addOption(
      new Option('--since <duration>', 'this long: 24h, 7d, 35d; agents keep whole hours of 35 days')
        .argParser(duration)
        .default(86_400_000, '24h'),
    );
  return addPrometheusOptions(command, 'ask this Prometheus, which scrapes the agents, instead of the agents')
    .addOption(outputOption({ format: 'csv', meaning: 'a line for each, for spreadsheets' }))
    .action(async (options: UsageOptions) => {
      const prometheus = await prometheusOf(options);
      const sinceMs = Date.now() - options.since;
      if (prometheus !== null) return printed(options, sinceMs, await fromPrometheus(prometheus, options));
      await withCluster({ ...options, allNamespaces: true }, async ({ cluster }) =>
        printed(options, sinceMs, await fromAgents(cluster, options, sinceMs)),
      );
    });
}

async function fromAgents(cluster: GpuCluster, { by, namespace }: UsageOptions, sinceMs: number): Promise<Found> {
  const answers = await cluster.askAll('/api/use', { since: String(sinceMs) });
  for (const [node, answer] of answers)
    if (typeof answer === 'string') process.stderr.write(`kubectl gpu: ${node}: ${answer}\n`);
  if ([...answers.values()].every((answer) => typeof answer === 'string')) process.exitCode = 1;
  const usage = hoursOfAgents(answers, by, (of) => namespace === undefined || of === namespace);
  return { usage, knowsNoMore: 'the agents know no more' };
}

async function fromPrometheus(
  options: PrometheusOptions,
  { by, namespace, since: forMs }: UsageOptions,
): Promise<Found> {
  const prometheus = new Prometheus({ ...options, timeoutMs: QUERY_MS });
  const namespaces = namespace === undefined ? null : [namespace];
  const answer = await hoursOfPrometheus(prometheus, { by, forMs, namespaces }, Date.now());
  if (!answer.ok) throw new Error(answer.reason);
  const keeps = await prometheus.retention();
  const kept = keeps === null ? '' : `; it keeps ${keeps}`;
  return { usage: answer.usage, knowsNoMore: `Prometheus knows no more${kept}` };
}

/** A month of a large cluster takes Prometheus some seconds. */
const QUERY_MS = 60_000;

async function printed(
  { by, output }: UsageOptions,
  sinceMs: number,
  { usage: { rows, fromMs }, knowsNoMore }: Found,
): Promise<void> {
  if (rows.length === 0) process.stderr.write('no GPU was allocated in this time\n');
  else if (fromMs - sinceMs > TOLERANCE_MS)
    process.stderr.write(`from ${new Date(fromMs).toISOString()} on: ${knowsNoMore}\n`);
  const hasGpus = rows.some(({ gpus }) => gpus !== undefined);
  const lines = (isWide: boolean): string =>
    rows.length === 0
      ? ''
      : table(
          usageHeadings(by, isWide && hasGpus),
          rows.map((row) => usageCells(row, isWide && hasGpus, '-')),
        );
  if (output === 'csv')
    process.stdout.write(csv([usageHeadings(by, hasGpus), ...rows.map((row) => usageCells(row, hasGpus, ''))]));
  else
    await print(output, {
      document: () => rows.map((row: UsageRow) => ({ by, ...row })),
      table: () => lines(false),
      wide: () => lines(true),
    });
}

/** The first moment of a range may have no sample. */
const TOLERANCE_MS = 15 * 60_000;
