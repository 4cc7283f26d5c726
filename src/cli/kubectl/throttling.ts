import { Option, type Command } from 'commander';
import type { SliceMinutes } from '../../agent/node/index.js';
import { csv } from '../../console/csv.js';
import { list, record } from '../../kube/json.js';
import { outputOption, print, type Output } from '../output.js';
import { table } from '../terminal-text.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import { duration } from './idle.js';
import { selectedPods } from './pods.js';

interface ThrottlingOptions extends NamespaceOptions {
  readonly since: number;
  readonly output: Output | 'csv';
}

const HEADINGS = ['CONTAINER', 'GPU', 'OBSERVED', 'USED', 'THROTTLED', 'OWN SHARE', 'PRIORITY', 'LENDING'] as const;

/** `kubectl gpu throttling`: how much of the time the launches of a pod were held back, and why. */
export function throttlingCommand(): Command {
  return clusterCommand('throttling')
    .description(
      'show in how much of the time the launches of a pod were throttled: by its own share, by a neighbour of high priority, or by lending',
    )
    .argument('<pod>')
    .addOption(namespaceOption())
    .addOption(
      new Option('--since <duration>', 'this long, three hours at most: 10m, 1h')
        .argParser(duration)
        .default(3_600_000, '1h'),
    )
    .addOption(outputOption({ format: 'csv', meaning: 'a line for each minute' }))
    .action((name: string, options: ThrottlingOptions) =>
      withCluster(options, async ({ cluster, namespace }) => {
        const { since, output } = options;
        const { pods } = await cluster.pods(namespace, null);
        const [found] = selectedPods(pods, [name], namespace);
        const node = found?.pod.node ?? null;
        if (found === undefined || node === null) throw new Error(`pod ${name} has no node yet`);
        const answer = await cluster.askNode(node, '/api/minutes', {
          pod: `${found.pod.namespace}/${name}`,
          since: String(Date.now() - since),
        });
        if (typeof answer === 'string') throw new Error(`node ${node}: ${answer}`);
        const slices = (list(record(answer).slices) as readonly SliceMinutes[]).map((slice) => ({
          ...slice,
          gpu: found.containers
            .flatMap(({ allocation }) => allocation?.slices ?? [])
            .find(({ gpuUuid }) => gpuUuid === slice.gpuUuid)?.gpuIndex,
        }));
        if (slices.length === 0) process.stderr.write(`the agent of ${node} has not observed the pod yet\n`);
        if (output === 'csv') {
          process.stdout.write(csv([['TIME', ...HEADINGS], ...slices.flatMap(minuteLines)]));
          return;
        }
        await print(output, {
          document: () =>
            slices.map(({ owner, ...slice }) => ({ container: owner.container, ...sumOf(slice), ...slice })),
          table: () => (slices.length === 0 ? '' : table(HEADINGS, slices.map(lineOf))),
        });
      }),
    );
}

type Slice = SliceMinutes & { readonly gpu: number | undefined };
type Minutes = Pick<SliceMinutes, 'minutes'>;

/** Sums in seconds. */
function sumOf({ minutes }: Minutes) {
  const sum = (of: (minute: Minutes['minutes'][number]) => number): number =>
    minutes.reduce((total, minute) => total + of(minute), 0);
  const [share, priority, lending] = (['share', 'priority', 'lending'] as const).map((reason) =>
    sum(({ throttled }) => throttled[reason]),
  ) as [number, number, number];
  return {
    ...{ observedSeconds: sum(({ seconds }) => seconds), usedSeconds: sum(({ used }) => used) },
    throttledSeconds: share + priority + lending,
    ...{ ownShareSeconds: share, prioritySeconds: priority, lendingSeconds: lending },
  };
}

function lineOf({ owner, gpu, ...slice }: Slice): readonly string[] {
  return [owner.container, gpu === undefined ? '-' : String(gpu), ...figures(slice)];
}

function minuteLines({ owner, gpu, minutes }: Slice): readonly (readonly string[])[] {
  return minutes.map((minute) => [
    new Date(minute.atMs).toISOString(),
    ...[owner.container, gpu === undefined ? '' : String(gpu)],
    ...figures({ minutes: [minute] }),
  ]);
}

/** The observed time, and parts of it in percent. */
function figures(slice: Minutes): readonly string[] {
  const sums = sumOf(slice);
  const part = (seconds: number): string =>
    sums.observedSeconds === 0 ? '-' : `${Math.round((seconds / sums.observedSeconds) * 100)} %`;
  const { observedSeconds, usedSeconds, throttledSeconds, ownShareSeconds, prioritySeconds, lendingSeconds } = sums;
  return [
    `${Math.round(observedSeconds)} s`,
    ...[usedSeconds, throttledSeconds, ownShareSeconds, prioritySeconds, lendingSeconds].map(part),
  ];
}
