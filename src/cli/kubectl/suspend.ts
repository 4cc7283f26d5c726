import { setTimeout as delay } from 'node:timers/promises';
import type { SuspensionSnapshot } from '../../agent/node/view.js';
import { SUSPEND_KEY } from '../../gpu/annotations.js';
import type { SuspendRequest } from '../../kube/limit-annotations.js';
import type { Pod } from '../../kube/pod.js';
import { secondsBetween } from '../flag-values.js';
import { outputOption, type Output } from '../output.js';
import { refuseOptions } from '../refused-options.js';
import { printable } from '../terminal-text.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuCluster } from './gpu-cluster.js';
import { annotate, merged, ONE_POD, printChanges, readTarget, targets } from './limit-annotations.js';
import { podEvents } from './limits-outcome.js';
import { suspensionText } from './suspension-text.js';

interface SuspendOptions extends NamespaceOptions {
  readonly output: Output;
  readonly container?: string;
  /** Seconds. */
  readonly wait: number;
  readonly hold: boolean;
}

/** What became of a request. */
type Outcome =
  | { readonly state: 'done'; readonly containers: readonly string[] }
  | { readonly state: 'refused' | 'not seen'; readonly why: string }
  | { readonly state: 'not running' };

/** How long the commands wait for the agent, in seconds: 140 GiB take half a minute. */
const WAIT_SECONDS = 60;
const INTERVAL_MS = 250;
const REFUSED = ['GPUSuspendRefused', 'GPUSuspendFailed'];
const DONE = { suspended: 'GPUSuspended', held: 'GPUSuspended', running: 'GPUResumed' } as const;

const REFUSED_OPTIONS = { ...ONE_POD, watch: 'it changes a pod once; kubectl gpu pods -w shows pods as they change' };

/** `kubectl gpu suspend`: the GPU memory of a running pod moves to its node's memory. */
export function suspendCommand(): ReturnType<typeof clusterCommand> {
  return requestCommand('suspend')
    .description("move a running pod's GPU memory to its node's memory, until one of its programs uses the GPU again")
    .option('--hold', 'until "kubectl gpu resume": calls of its programs wait', false)
    .action((name: string, options: SuspendOptions) => ask(name, options.hold ? 'held' : 'suspended', options));
}

/** `kubectl gpu resume`: it moves back. */
export function resumeCommand(): ReturnType<typeof clusterCommand> {
  return requestCommand('resume')
    .description("move a suspended pod's memory back to its GPU")
    .action((name: string, options: SuspendOptions) => ask(name, 'running', options));
}

function requestCommand(name: string): ReturnType<typeof clusterCommand> {
  return refuseOptions(clusterCommand(name), REFUSED_OPTIONS)
    .argument('<pod>', 'name, or pod/name')
    .addOption(namespaceOption())
    .option('-c, --container <name>', 'only this container; default: every container')
    .option(
      '--wait <seconds>',
      'how long to wait until the agent did or refused it; 0: do not wait',
      secondsBetween(0, 3_600),
      WAIT_SECONDS,
    )
    .addOption(outputOption());
}

function ask(name: string, wanted: SuspendRequest, options: SuspendOptions): Promise<void> {
  return withCluster(options, async ({ cluster, namespace }) => {
    const pod = await readTarget(cluster.api, namespace ?? 'default', name);
    const { gpuPod } = await cluster.podWithFigures(pod);
    const containers = targets(gpuPod, options.container).map((container) => container.name);
    // With the time, the same request is a new one.
    const value = `${wanted}@${new Date().toISOString()}`;
    const changes = { [SUSPEND_KEY]: merged(gpuPod, SUSPEND_KEY, options.container, value) };
    const before = options.wait > 0 ? await eventsOf(cluster, pod, wanted) : [];
    await annotate(cluster.api, pod, changes);
    if (options.wait === 0) return printChanges(options.output, pod, changes);
    const known = new Set(before.map(({ resourceVersion }) => resourceVersion));
    const outcome = await outcomeOf(cluster, pod, { wanted, containers, known, waitMs: options.wait * 1_000 });
    await printChanges(options.output, pod, changes, {
      document: { outcome },
      lines: outcomeLines(outcome, options.wait).map(printable),
    });
    if (outcome.state === 'refused' || outcome.state === 'not seen') process.exitCode = 1;
  });
}

const eventsOf = (cluster: GpuCluster, pod: Pod, wanted: SuspendRequest): ReturnType<typeof podEvents> =>
  podEvents(cluster, pod, [...REFUSED, DONE[wanted]]);

interface Asked {
  readonly wanted: SuspendRequest;
  readonly containers: readonly string[];
  /** Versions of the events that say nothing about this request. */
  readonly known: ReadonlySet<string>;
  readonly waitMs: number;
}

/** Waits until the agent's figures show what was asked for, or an event of the pod says that it was done or refused. */
async function outcomeOf(cluster: GpuCluster, pod: Pod, asked: Asked): Promise<Outcome> {
  if (pod.node === null) return { state: 'not running' };
  const endMs = performance.now() + asked.waitMs;
  for (;;) {
    const { gpuPod, problems } = await cluster.podWithFigures(pod);
    const found = gpuPod.containers.filter(({ name }) => asked.containers.includes(name));
    const events = (await eventsOf(cluster, pod, asked.wanted)).filter(
      ({ resourceVersion }) => !asked.known.has(resourceVersion),
    );
    const refusal = events.findLast(({ reason }) => REFUSED.includes(reason));
    if (refusal !== undefined) return { state: 'refused', why: refusal.message };
    if (found.every(({ allocation }) => allocation !== null && isAsAsked(allocation.suspension, asked.wanted)))
      return {
        state: 'done',
        containers: found.map(({ name, allocation }) =>
          allocation?.suspension === undefined
            ? `${name} runs`
            : `${name} is ${suspensionText(allocation.suspension, Date.now())}`,
        ),
      };
    // A call may have resumed it already, or the agent does not answer.
    const done = events.filter(({ reason }) => reason === DONE[asked.wanted]);
    if (done.length >= asked.containers.length)
      return { state: 'done', containers: done.map(({ message }) => message) };
    if (performance.now() >= endMs)
      return {
        state: 'not seen',
        why: [...problems.values()].join('; ') || 'the agent of its node has not done it yet',
      };
    await delay(INTERVAL_MS);
  }
}

function isAsAsked(suspension: SuspensionSnapshot | undefined, wanted: SuspendRequest): boolean {
  if (wanted === 'running') return suspension === undefined;
  return suspension?.step === 'suspended' && (wanted === 'suspended' || suspension.held);
}

function outcomeLines(outcome: Outcome, waitSeconds: number): readonly string[] {
  switch (outcome.state) {
    case 'done':
      return outcome.containers;
    case 'refused':
      return [`refused: ${outcome.why}`];
    case 'not seen':
      return [`not seen after ${waitSeconds} s: ${outcome.why}`];
    case 'not running':
      return ['nothing to do: it has no node yet'];
  }
}
