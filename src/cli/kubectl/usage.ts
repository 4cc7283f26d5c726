import { Option, type Command } from 'commander';
import type { ContainerHours, HourlyUse } from '../../agent/node/index.js';
import { list, record } from '../../kube/json.js';
import { outputOption, print, type Output } from '../output.js';
import { table } from '../terminal-text.js';
import { csv } from './csv.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import { duration } from './idle.js';

type By = 'namespace' | 'pod' | 'group' | 'node';

interface UsageOptions extends NamespaceOptions {
  readonly by: By;
  readonly since: number;
  readonly output: Output | 'csv';
}

/** The sum of what pods had of GPUs. */
interface UsageRow {
  readonly name: string;
  readonly nodes: Set<string>;
  readonly gpus: Set<string>;
  readonly pods: Set<string>;
  allocated: number;
  used: number;
}

const HOUR = 3_600;

/** `kubectl gpu usage`: GPU-hours, from what the agents keep. */
export function usageCommand(): Command {
  return clusterCommand('usage')
    .description('sum up GPU-hours: allocated and used, by namespace, pod, quota group or node, also of ended pods')
    .addOption(namespaceOption('only pods of this namespace; default: all'))
    .addOption(
      new Option('--by <what>', 'one line for each')
        .choices(['namespace', 'pod', 'group', 'node'])
        .default('namespace'),
    )
    .option('--since <duration>', 'this long, in whole hours: 24h, 7d, 35d at most; default: 24h', duration, 86_400_000)
    .addOption(outputOption({ format: 'csv', meaning: 'a line for each, for spreadsheets' }))
    .action((options: UsageOptions) =>
      withCluster({ ...options, allNamespaces: true }, async ({ cluster }) => {
        const { namespace, by, since, output } = options;
        const sinceMs = Date.now() - since;
        const answers = await cluster.askAll('/api/use', { since: String(sinceMs) });
        const rows = new Map<string, UsageRow>();
        let fromMs = Infinity;
        for (const [node, answer] of answers) {
          if (typeof answer === 'string') {
            process.stderr.write(`kubectl gpu: ${node}: ${answer}\n`);
            continue;
          }
          const hours = answer as HourlyUse;
          fromMs = Math.min(fromMs, hours.fromMs);
          for (const one of list(record(hours).containers) as readonly ContainerHours[])
            if (namespace === undefined || one.namespace === namespace) add(rows, by, node, one);
        }
        if ([...answers.values()].every((answer) => typeof answer === 'string')) process.exitCode = 1;
        const sorted = [...rows.values()].sort((a, b) => b.allocated - a.allocated);
        if (sorted.length === 0) process.stderr.write('no GPU was allocated in this time\n');
        else if (fromMs > sinceMs)
          process.stderr.write(`from ${new Date(fromMs).toISOString()} on: the agents know no more\n`);
        if (output === 'csv') {
          process.stdout.write(csv([headings(by, true), ...sorted.map((row) => cells(by, row, true))]));
          return;
        }
        await print(output, {
          document: () => sorted.map((row) => documentOf(by, row)),
          table: () =>
            sorted.length === 0
              ? ''
              : table(
                  headings(by, false),
                  sorted.map((row) => cells(by, row, false)),
                ),
          wide: () =>
            sorted.length === 0
              ? ''
              : table(
                  headings(by, true),
                  sorted.map((row) => cells(by, row, true)),
                ),
        });
      }),
    );
}

function add(rows: Map<string, UsageRow>, by: By, node: string, one: ContainerHours): void {
  const pod = `${one.namespace}/${one.pod}`;
  const name = { namespace: one.namespace, pod, group: one.quotaGroup ?? '(no group)', node }[by];
  const row = rows.get(name) ?? { name, nodes: new Set(), gpus: new Set(), pods: new Set(), allocated: 0, used: 0 };
  rows.set(name, row);
  row.nodes.add(node);
  row.pods.add(pod);
  for (const gpu of one.gpus) row.gpus.add(`${node}:${gpu}`);
  row.allocated += one.allocatedSeconds / HOUR;
  row.used += one.usedSeconds / HOUR;
}

function headings(by: By, isWide: boolean): readonly string[] {
  return [by.toUpperCase(), 'ALLOCATED', 'USED', 'USE', 'PODS', ...(isWide ? ['GPUS'] : [])];
}

function cells(by: By, row: UsageRow, isWide: boolean): readonly string[] {
  const { name, allocatedGpuHours, usedGpuHours, usedPart, pods, gpus } = documentOf(by, row);
  const part = usedPart === null ? '-' : `${Math.round(usedPart * 100)} %`;
  return [
    name,
    String(allocatedGpuHours),
    String(usedGpuHours),
    part,
    String(pods),
    ...(isWide ? [gpus.join(' ')] : []),
  ];
}

function documentOf(by: By, { name, allocated, used, pods, gpus }: UsageRow) {
  const rounded = (hours: number): number => Math.round(hours * 100) / 100;
  return {
    ...{ by, name, allocatedGpuHours: rounded(allocated), usedGpuHours: rounded(used) },
    usedPart: allocated === 0 ? null : Math.round((used / allocated) * 1000) / 1000,
    pods: pods.size,
    gpus: [...gpus].sort(),
  };
}
