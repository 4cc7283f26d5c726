import { dirname } from 'node:path';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import type { Allocator } from '../allocator/index.js';
import type { GivenContainer } from '../allocator/ports.js';
import type { AnnouncedContainers } from '../runtimes/index.js';
import { kubeletFile } from '../device-plugin/index.js';
import { decideAffinity, type AffinityAnswer, type CpuAffinity } from './cpu-affinity.js';
import { CPU_MANAGER_FILE, readCpuManagerPolicy } from './cpu-manager.js';
import { readCpuTopology } from './cpu-topology.js';
import { KnownContainers } from './known-containers.js';
import { NriPlugin } from './nri-plugin.js';
import type { GivenSlice, NriJournal, StartGate } from './ports.js';
import type { RuntimeContainer } from './runtime-container.js';
import { isSameSource } from '../libraries/index.js';

/** The flags of the agent that concern the runtime's Node Resource Interface. */
export interface NriConfig {
  /** Socket of the runtime's Node Resource Interface; null: NRI is not used. */
  readonly nriSocket: string | null;
  /** Whether containers are bound to CPUs near their GPUs. */
  readonly cpuAffinity: CpuAffinity;
  /** Its directory is in the kubelet's root. */
  readonly podResourcesSocket: string;
  /** Mount point of the host's file system, or of its /usr. */
  readonly hostRoot: string;
}

export interface NriOptions {
  readonly config: NriConfig;
  /** Learns of the announced containers. */
  readonly announced: Pick<AnnouncedContainers, 'attach'>;
  readonly allocator: Pick<Allocator, 'givenTo' | 'reconcile'>;
  /** Containers with resource claims; null if claims are not used. */
  readonly claims: {
    givenTo(podUid: string, container: string): GivenContainer | null;
    freeOver(isOver: () => boolean): Promise<void>;
  } | null;
  readonly startGate: StartGate;
  /** Samples the processes of a slice at once. */
  readonly sample: (slice: string) => void;
  /** Directory that describes CPUs and NUMA nodes; tests pass another. */
  readonly systemDirectory?: string;
  /** The ledger frees an allocation after this long without a holder. */
  readonly graceMs: number;
  readonly journal: NriJournal;
  readonly clock: Clock;
  readonly log: Log;
}

/** The parts of the Node Resource Interface. */
export interface Nri {
  readonly containers: KnownContainers;
  readonly plugin: NriPlugin;
  /** Number of containers that were corrected at their creation since the agent started. */
  readonly corrected: () => number;
  readonly part: Part;
}

/** The plugin of the runtime's Node Resource Interface; null without `--nri`. */
export async function openNri(options: NriOptions): Promise<Nri | null> {
  if (options.config.nriSocket === null) return null;
  const nri = nriPlugin(options, options.config.nriSocket);
  options.announced.attach(nri.containers);
  return nri;
}

function nriPlugin(options: NriOptions, socketPath: string): Nri {
  const { allocator, claims, journal, clock, log } = options;
  const releases = new EarlyReconciliation(options);
  const givenTo = (podUid: string, container: string): GivenSlice | null => {
    const given = allocator.givenTo(podUid, container) ?? claims?.givenTo(podUid, container) ?? null;
    if (given === null) return null;
    const { slice, environment, mounts, gpus } = given;
    return { slice, environment, mounts, numaNodes: gpus.flatMap(({ numaNode }) => numaNode ?? []) };
  };
  const slices = { givenTo, isSameSource };
  const containers = new KnownContainers(slices);
  const affinity = new Affinity(options);
  let corrected = 0;
  const plugin = new NriPlugin({
    socketPath,
    slices,
    containers,
    affinity: (container, given) => affinity.of(container, given),
    startGate: options.startGate,
    events: {
      corrected(container, corrections) {
        corrected += 1;
        const { namespace, pod, name } = container;
        const what = `${namespace}/${pod}/${name}: corrected before the container was created: ${corrections.join('; ')}`;
        log.info({ namespace, pod, container: name, corrections }, 'NRI corrected a container before it was created');
        journal.note({ level: 'info', kind: 'Injected', message: what });
      },
      stopped(container) {
        options.sample(container.slice);
        releases.containerOver();
      },
      removed: () => releases.containerOver(),
      synchronized(found) {
        const wrong = found.filter(({ problems }) => problems.length > 0);
        log.info({ containers: found.length, uninjected: wrong.length }, 'the container runtime listed its containers');
        releases.containerOver();
      },
    },
    onChange: (connected, reason) =>
      journal.note(
        connected
          ? { level: 'info', kind: 'NRI', message: 'the container runtime asks this agent about containers' }
          : { level: 'warning', kind: 'NRI', message: `containers start without NRI: ${reason ?? ''}` },
      ),
    clock,
    log,
  });
  return {
    containers,
    plugin,
    corrected: () => corrected,
    part: {
      name: 'nri',
      start: () => plugin.start(),
      async stop() {
        await plugin.stop();
        releases.stop();
      },
    },
  };
}

/** The kubelet releases a container's devices a little later than the runtime releases the container. */
const SOON_MS = 500;

/** Reconciles the ledger when containers end, instead of waiting for the next period. */
class EarlyReconciliation {
  readonly #options: NriOptions;
  #cancelSoon: (() => void) | null = null;
  #cancelLater: () => void = () => undefined;

  constructor(options: NriOptions) {
    this.#options = options;
  }

  containerOver(): void {
    const { clock, graceMs } = this.#options;
    this.#cancelSoon ??= clock.after(SOON_MS, () => {
      this.#cancelSoon = null;
      this.#compare();
      // An allocation without confirmation at this time is freed.
      this.#cancelLater();
      this.#cancelLater = clock.after(graceMs + SOON_MS, () => this.#compare());
    });
  }

  stop(): void {
    this.#cancelSoon?.();
    this.#cancelLater();
  }

  #compare(): void {
    const { allocator, claims, log } = this.#options;
    const failed = (error: unknown): void =>
      log.error({ err: error }, 'ledger reconciliation with the kubelet failed; the agent retries in the next period');
    allocator.reconcile().catch(failed);
    claims?.freeOver(() => false).catch(failed);
  }
}

/** Binds containers to CPUs near their GPUs: `--cpu-affinity`. */
class Affinity {
  readonly #config: NriOptions['config'];
  readonly #systemDirectory: string | undefined;
  readonly #log: Log;
  #logged = '';

  constructor({ config, systemDirectory, log }: NriOptions) {
    this.#config = config;
    this.#systemDirectory = systemDirectory;
    this.#log = log;
  }

  /** The agent reads both files for each container, because the kubelet may have restarted with another policy. */
  async of({ podAnnotations, cpus }: RuntimeContainer, { numaNodes }: GivenSlice): Promise<AffinityAnswer> {
    const { cpuAffinity, podResourcesSocket, hostRoot } = this.#config;
    if (cpuAffinity === 'off') return { kind: 'none', reason: 'off' };
    const policy = await readCpuManagerPolicy(kubeletFile(dirname(podResourcesSocket), hostRoot, CPU_MANAGER_FILE));
    const topology = await readCpuTopology(this.#systemDirectory);
    const answer = decideAffinity({ standard: cpuAffinity, podAnnotations, policy, cpus, numaNodes, topology });
    if (answer.kind === 'none' && answer.reason !== this.#logged) {
      this.#logged = answer.reason;
      this.#log.info({ reason: answer.reason }, '--cpu-affinity: a container is not bound to CPUs');
    }
    return answer;
  }
}
