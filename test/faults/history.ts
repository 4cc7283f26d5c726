import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import type { AgentConfig } from '../../src/agent/config.js';
import { generator } from '../generator.js';
import { eventually } from '../harness/eventually.js';
import type { AgentHouse } from './agent-house.js';
import { ClaimPods, uuidOf, type ClaimPod, type ClaimStep } from './claim-pods.js';
import { corrupt, CORRUPTIONS } from './corruption.js';
import { halfWritten, leftOver, lostOrDoubled, straySockets, type KnownPod } from './inspection.js';
import type { DiskError } from './named-steps.js';
import { GPUS, FaultNode, type Cluster } from './node.js';
import type { LedgerReport, Order } from './orders.js';

export interface HistoryOptions {
  /** All files of this history are below it. */
  readonly directory: string;
  readonly devices: string;
  /** Number of the history in its run; part of the seed. */
  readonly index: number;
  readonly seed: number;
}

const GRACE_MS = 10_000;
/** No step takes this long, even on a busy machine; a step that is not done by then has failed. */
const PATIENCE_MS = 120_000;
const HOUR_MS = 3_600_000;
/** A GPU returns to the device plugin when it has not been published for a minute. */
const WITHDRAWN_MS = 61_000;

/** Few shapes, so that nearly every pod has a twin with which it could be confused. */
const SHAPES: readonly (readonly [cores: number, memoryBlocks: number])[] = [
  [10, 4],
  [10, 8],
  [20, 8],
  [30, 16],
  [50, 32],
  [100, 0],
  [100, 8],
  [200, 0],
  [200, 8],
];

const DISK_ERRORS: readonly DiskError[] = ['ENOSPC', 'EROFS', 'EIO'];

/** More steps than any single action has: sometimes an agent is killed only after the last of them. */
const MAX_STEPS = 30;

/** How the life of an agent in a history ended; null if the agent went through all of its actions. */
export type Stop = string | null;

/**
 * One node and its history: pods come, start and end while its agent is killed again and again, and the disk, the clock
 * and the API server fail at times. The seed determines all random choices.
 */
export class History {
  readonly name: string;
  /** The events, one line each. */
  readonly lines: string[] = [];
  /** The faults; empty if there are none. */
  readonly violations: string[] = [];
  readonly node: FaultNode;
  readonly #random: () => number;
  readonly #pods: KnownPod[] = [];
  /** Null on a node without resource claims. */
  readonly #claims: ClaimPods | null;
  readonly #cluster: Cluster;
  readonly #begun = performance.now();
  #house: AgentHouse | null = null;
  #dying = false;
  /** Calls in progress when the agent was stopped. */
  #afterDeath: Promise<unknown> = Promise.resolve();
  #apiServerIsBroken = false;
  #diskIsBroken = false;
  #serial = 0;
  /** The pod of the original's plugin; null once it has ended. */
  #oldPod: EmulatedPod | null = null;
  /** The last order to the agent. */
  #under = '';

  constructor({ directory, devices, index, seed }: HistoryOptions) {
    this.name = `h${index}`;
    const random = generator((seed * 0x9e3779b1 + index * 0x85ebca6b) >>> 0);
    for (let warm = 0; warm < 8; warm += 1) random();
    this.#random = random;
    this.#cluster = this.#pick(['none', 'none', 'http', 'https'] as const);
    const claims = this.#cluster !== 'none' && random() < 0.7;
    this.node = new FaultNode({
      directory: join(directory, this.name),
      devices,
      cluster: this.#cluster,
      order: () => (random() < 0.5 ? ['core', 'memory'] : ['memory', 'core']),
      claims,
    });
    const { server } = this.node;
    this.#claims = claims && server !== null ? new ClaimPods(this.node.config, server, random, this.name) : null;
  }

  get passed(): boolean {
    return this.violations.length === 0;
  }

  async open(): Promise<void> {
    this.#note(`begins, API server: ${this.#cluster}${this.#claims === null ? '' : ', with claims'}`);
    await this.node.open();
    if (this.#random() >= 0.25) return;
    const gpu = Math.floor(this.#random() * GPUS);
    const uid = `00000000-0000-4000-8000-${Math.floor(this.#random() * 1e12)
      .toString()
      .padStart(12, '0')}`;
    const container = {
      name: 'main',
      ...this.#pick([
        { cores: 30, memoryBlocks: 8 },
        { cores: 60, memoryBlocks: 32 },
        { cores: 100, memoryBlocks: 16 },
      ]),
    };
    this.#oldPod = { uid, namespace: 'default', name: `${this.name}-old`, containers: [container], initContainers: [] };
    this.#note(`a pod of the original's plugin holds ${container.cores}/${container.memoryBlocks} of GPU ${gpu}`);
    await this.node.inheritOldPod(this.#oldPod, gpu, this.#random() < 0.5);
  }

  /**
   * One life of the agent: it starts, is inspected, and lives through a few actions, during one of which it is stopped.
   */
  async live(house: AgentHouse): Promise<Stop> {
    this.#house = house;
    this.#dying = false;
    const frozen = house.frozen(this.name);
    const deed = Math.floor(this.#random() * 7) - 1;
    const steps = Math.floor(this.#random() * this.#random() * MAX_STEPS);
    const work = this.#lifetime(deed, steps).then(
      () => null,
      (error: unknown) => this.#violated([`while ${this.#under}: ${(error as Error).message}`]),
    );
    const stopped = await Promise.race([work, frozen.then((step) => this.#die(step))]);
    this.#note(stopped === null ? 'killed at rest' : `killed at: ${stopped}`);
    this.#afterDeath = work;
    return stopped;
  }

  /** The agent is frozen: its output after this point does not count. */
  #die(step: string): string {
    this.#dying = true;
    return step;
  }

  /**
   * The agent's process is gone. Calls of the kubelet have failed, and the events of a node without an agent follow.
   */
  async bury(): Promise<void> {
    this.#house = null;
    this.#dying = true;
    this.#diskIsBroken = false;
    await this.#afterDeath;
    await this.node.kubelet
      .until(() => this.node.kubelet.allocatable('core') === 0 && this.node.kubelet.allocatable('memory') === 0)
      .catch(() => undefined);
    if (this.#random() < 0.25) {
      const corruption = this.#pick(CORRUPTIONS);
      this.#note(`the checkpoint is ${corruption}`);
      await corrupt(join(this.node.config.checkpointPath, CHECKPOINT_FILE), corruption, this.#random);
    }
    if (this.#random() < 0.2) this.#endOne();
    if (this.#random() < 0.2) await this.#admitOne();
    if (this.#random() < 0.2) await this.#scheduleClaims();
    if (this.#random() < 0.2) await this.#endClaims();
    if (this.#random() < 0.15) await this.#restartKubelet();
  }

  /** The last life: no fault is injected any more. An error that is found now stays. */
  async finish(house: AgentHouse): Promise<void> {
    this.#house = house;
    this.#dying = false;
    try {
      this.node.server?.clearFaults();
      this.#apiServerIsBroken = false;
      await this.#start(null);
      this.#violated(await halfWritten(this.node, house.pid));
      await this.#compare();
      this.#note('every pod ends');
      this.#endOld();
      for (const { pod } of this.#pods.splice(0)) this.node.end(pod);
      await this.#compare();
      await this.#returnEveryGpu();
      const whole = this.#newPod([['all', GPUS * 100, GPUS * 8]]);
      if (!(await this.#admit(whole))) this.#violated(['the empty node is refused to a pod that wants all of it']);
      await this.#startOne(whole);
      this.node.end(whole.pod);
      await this.#ask({ do: 'stop' });
      this.#violated(await straySockets(this.node, ['kubelet.sock']));
    } catch (error) {
      this.#violated([`at the end, while ${this.#under}: ${(error as Error).message}`]);
    }
  }

  async close(): Promise<void> {
    await this.node.close();
  }

  async #lifetime(deed: number, steps: number): Promise<void> {
    await this.#start(deed === -1 ? steps : null);
    await this.#look();
    if (this.#claims !== null && this.#random() < 0.6) await this.#pass();
    for (let at = 0; at < 6; at += 1) {
      if (this.#dying) return;
      if (at === deed) await this.#ask({ do: 'freeze', steps });
      await this.#act();
    }
    await this.#heal();
    await this.#look();
    if (this.#random() < 0.3) await this.#compare();
  }

  async #start(freezeAfter: number | null, allocation = this.#allocation()): Promise<void> {
    const { config } = this.node;
    this.#note(
      `the agent starts, mode ${allocation.allocation}, claims on ${[...allocation.draGpus].join() || 'none or all'}`,
    );
    await this.#ask({
      do: 'start',
      directory: join(config.checkpointPath, '..'),
      config: { ...config, ...allocation },
      graceMs: GRACE_MS,
      freezeAfter,
    });
    await this.#registered();
    await this.#acceptDriver();
  }

  /** Which GPUs a life gives to claims: mostly the first two. */
  #allocation(): Pick<AgentConfig, 'allocation' | 'draGpus'> {
    const dice = this.#claims === null ? 1 : this.#random();
    const mixed = (...gpus: readonly number[]) =>
      ({ allocation: 'mixed', draGpus: new Set(gpus.map(uuidOf)) }) as const;
    if (dice < 0.7) return mixed(0, 1);
    if (dice < 0.8) return mixed(0, 1, 2);
    if (dice < 0.85) return mixed(3);
    return { allocation: this.#claims !== null && dice < 0.95 ? 'dra' : 'plugin', draGpus: new Set() };
  }

  async #act(): Promise<void> {
    const actions: readonly (readonly [weight: number, act: () => Promise<void> | void])[] = [
      [6, () => this.#admitOne()],
      [6, () => this.#startAny()],
      [3, () => this.#endOne()],
      [1, () => this.#restartKubelet()],
      [1, () => this.#reconcile()],
      [1, () => this.#jump()],
      [2, () => this.#breakDisk()],
      [this.node.server === null ? 0 : 2, () => this.#breakApiServer()],
      [1, () => this.#heal()],
      ...(this.#claims === null
        ? []
        : ([
            [5, () => this.#scheduleClaims()],
            [3, () => this.#prepareAny()],
            [4, () => this.#endClaims()],
            [1, () => this.#forceDelete()],
            [2, () => this.#pass()],
          ] as const)),
    ];
    let at = this.#random() * actions.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, act] of actions) {
      at -= weight;
      if (at < 0) return act();
    }
  }

  #newPod(
    containers: readonly (readonly [name: string, cores: number, memoryBlocks: number])[],
    initial: readonly (readonly [string, number, number])[] = [],
  ): KnownPod {
    const name = `${this.name}-p${(this.#serial += 1)}`;
    const list = (entries: readonly (readonly [string, number, number])[]): EmulatedContainer[] =>
      entries.map(([container, cores, memoryBlocks]) => ({ name: container, cores, memoryBlocks }));
    const pod: EmulatedPod = {
      uid: `uid-${name}`,
      namespace: 'default',
      name,
      containers: list(containers),
      initContainers: list(initial),
    };
    return { pod, given: [], started: new Set() };
  }

  async #admitOne(): Promise<void> {
    const shaped = (name: string) => [name, ...this.#pick(SHAPES)] as const;
    const containers = this.#random() < 0.8 ? [shaped('a')] : [shaped('a'), shaped('b')];
    const initial = this.#random() < 0.2 ? [shaped('init')] : [];
    await this.#admit(this.#newPod(containers, initial));
  }

  async #admit(wanted: KnownPod): Promise<boolean> {
    const { pod } = wanted;
    const shape = [...pod.initContainers, ...pod.containers]
      .map(({ name, cores, memoryBlocks }) => `${name} ${cores}/${memoryBlocks}`)
      .join(', ');
    this.#note(`pod ${pod.name} is admitted: ${shape}`);
    this.node.submit(pod);
    if (this.#house !== null && this.node.server !== null && !this.#apiServerIsBroken) {
      const asked = { do: 'knows-pod', namespace: pod.namespace, name: pod.name } as const;
      await eventually(() => this.#ask(asked) as Promise<boolean>, 'the agent knows the pod', 5_000).catch(() =>
        this.#note('the agent has not heard of it'),
      );
    }
    const admission = await this.node.admit(pod);
    if (!admission.ok) {
      this.#note(`  refused: ${admission.message}`);
      this.node.end(pod);
      return false;
    }
    const known: KnownPod = { ...wanted, given: admission.containers };
    this.#pods.push(known);
    this.#note(
      `  got ${admission.containers.map((given) => `${given.coreIds[0] ?? 'nothing'}+${given.coreIds.length}, ${given.memoryIds[0] ?? 'nothing'}+${given.memoryIds.length}`).join('; ')}`,
    );
    return true;
  }

  async #startAny(): Promise<void> {
    if (this.#pods.length > 0) await this.#startOne(this.#pick(this.#pods));
  }

  /** Starts the containers of the pod that have not started; of a running pod, restarts one container. */
  async #startOne(wanted: KnownPod): Promise<void> {
    const known = this.#pods.find(({ pod }) => pod.uid === wanted.pod.uid);
    if (known === undefined) return;
    const { pod, started } = known;
    const fresh = [...pod.initContainers, ...pod.containers].filter(({ name }) => !started.has(name));
    for (const { name } of fresh.length > 0 ? fresh : [this.#pick(pod.containers)]) {
      this.#note(`${pod.name}/${name} starts`);
      try {
        await this.node.startContainer(pod, name);
        started.add(name);
      } catch (error) {
        // A kubelet retries; a controller that sees this for long enough gives up on the pod.
        this.#note(`  refused: ${(error as Error).message}`);
        return;
      }
    }
  }

  #endOne(): void {
    if (this.#oldPod !== null && this.#random() < 0.1) this.#endOld();
    if (this.#pods.length === 0) return;
    const known = this.#pick(this.#pods);
    this.#note(`${known.pod.name} ends`);
    this.#pods.splice(this.#pods.indexOf(known), 1);
    this.node.end(known.pod);
  }

  #endOld(): void {
    if (this.#oldPod === null) return;
    this.#note(`${this.#oldPod.name} ends`);
    this.node.end(this.#oldPod);
    this.#oldPod = null;
  }

  async #scheduleClaims(): Promise<void> {
    const pod = this.#claims?.schedule() ?? null;
    if (pod === null) return;
    const shape = pod.claims.map(({ gpu, cores, memoryBlocks }) => `${cores}/${memoryBlocks} of GPU ${gpu}`);
    this.#note(`pod ${pod.name} has claims on ${shape.join(', ')}`);
    await this.#prepareClaims(pod);
  }

  async #prepareAny(): Promise<void> {
    const waiting = this.#claims?.pods.filter(({ state }) => state === 'waiting') ?? [];
    if (waiting.length > 0) await this.#prepareClaims(this.#pick(waiting));
  }

  async #prepareClaims(pod: ClaimPod): Promise<void> {
    if (this.#claims === null) return;
    this.#note(`the claims of ${pod.name} are prepared`);
    const step = await this.#claims.prepare(pod);
    this.#noteStep(step);
    if (step.done || !step.refused || this.#dying || this.#apiServerIsBroken || this.#diskIsBroken) return;
    // The GPU was handed over meanwhile: a controller deletes such a pod and makes another.
    if (/belongs to the device plugin|is held by pods of the device plugin/.test(step.reason))
      await this.#endClaim(pod);
    else this.#violated([`${pod.name} is refused: ${step.reason}`]);
  }

  async #endClaims(): Promise<void> {
    const pods = this.#claims?.pods ?? [];
    if (pods.length > 0) await this.#endClaim(this.#pick(pods));
  }

  async #endClaim(pod: ClaimPod): Promise<void> {
    if (this.#claims === null) return;
    this.#note(`pod ${pod.name} with claims ends`);
    this.#noteStep(await this.#claims.end(pod));
  }

  async #forceDelete(): Promise<void> {
    const prepared = this.#claims?.pods.filter(({ state }) => state === 'prepared') ?? [];
    if (prepared.length === 0) return;
    const pod = this.#pick(prepared);
    this.#note(`pod ${pod.name} with claims is deleted by force`);
    await this.#claims?.forget(pod);
  }

  /** A minute passes: GPUs that no claim holds return to the device plugin, if it is to have them. */
  async #pass(): Promise<void> {
    this.#note('a minute passes');
    await this.#ask({ do: 'jump', ms: WITHDRAWN_MS });
    await delay(1_000);
  }

  #noteStep(step: ClaimStep): void {
    if (!step.done) this.#note(`  ${step.refused ? 'refused' : 'failed'}: ${step.reason}`);
  }

  /** The kubelet finds the registration socket of an agent that serves claims. */
  async #acceptDriver(): Promise<void> {
    if (this.#house === null) return;
    await this.#claims?.manager.register().catch((error: Error) => this.#note(`  no driver: ${error.message}`));
  }

  /** Prepares and releases every claim that waits for it, as a kubelet does when it calls again. */
  async #settleClaims(): Promise<void> {
    for (const pod of [...(this.#claims?.pods ?? [])]) {
      if (this.#dying) return;
      if (pod.state === 'waiting') await this.#prepareClaims(pod);
      else if (pod.state === 'leaving') await this.#endClaim(pod);
    }
  }

  /** Every claim ends; then claims get every whole GPU, and after them the device plugin does. */
  async #returnEveryGpu(): Promise<void> {
    if (this.#claims === null) return;
    for (const pod of [...this.#claims.pods]) await this.#endClaim(pod);
    await this.#compare();
    await this.#ask({ do: 'stop' });
    await this.#start(null, { allocation: 'dra', draGpus: new Set() });
    const claims = this.#claims;
    await eventually(() => claims.published().length === GPUS, 'every GPU to be published', PATIENCE_MS);
    for (let gpu = 0; gpu < GPUS; gpu += 1) {
      // What was deleted by force is released for the sake of these.
      const pod = claims.scheduleWhole(gpu);
      this.#note(`pod ${pod.name} has a claim on all of GPU ${gpu}`);
      await this.#prepareClaims(pod);
    }
    await this.#compare();
    for (const pod of [...claims.pods]) await this.#endClaim(pod);
    await this.#ask({ do: 'stop' });
    await this.#start(null, { allocation: 'plugin', draGpus: new Set() });
    this.#note('a minute passes');
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      await this.#ask({ do: 'jump', ms: WITHDRAWN_MS });
      await delay(300);
      const { offered } = (await this.#ask({ do: 'ledger' })) as LedgerReport;
      if (offered.length === GPUS && this.node.kubelet.allocatable('core') === GPUS * 100) return;
      if (performance.now() > deadline)
        return void this.#violated([`the device plugin has ${offered.length} of ${GPUS} GPUs again`]);
    }
  }

  async #restartKubelet(): Promise<void> {
    this.#note('the kubelet restarts');
    this.#claims?.restart();
    await this.node.kubelet.restart();
    await this.#acceptDriver();
    if (this.#house !== null && !this.#diskIsBroken) await this.#registered();
  }

  /** A stopped agent no longer registers. */
  async #registered(): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!this.#dying) {
      if (
        await this.node.kubelet.ready(200).then(
          () => true,
          () => false,
        )
      )
        return;
      if (performance.now() > deadline) throw new Error('the agent does not register');
    }
  }

  async #reconcile(): Promise<void> {
    this.#note('the ledger is compared with the kubelet');
    await this.#ask({ do: 'reconcile' }).catch((error: Error) => this.#note(`  ${error.message}`));
  }

  async #jump(): Promise<void> {
    const ms = Math.round((this.#random() * 2 - 1) * 48 * HOUR_MS);
    this.#note(`the clock is set ${Math.round(ms / 1_000)} s ${ms < 0 ? 'back' : 'ahead'}`);
    await this.#ask({ do: 'jump', ms });
  }

  async #breakDisk(): Promise<void> {
    const error = this.#pick(DISK_ERRORS);
    const [skip, times] = [Math.floor(this.#random() * 8), this.#random() < 0.5 ? 1 : 1_000_000];
    this.#note(`the disk says ${error} after ${skip} calls, ${times === 1 ? 'once' : 'from then on'}`);
    this.#diskIsBroken = true;
    await this.#ask({ do: 'break-disk', error, skip, times });
  }

  #breakApiServer(): void {
    const { server } = this.node;
    if (server === null) return;
    const troubles: readonly (readonly [name: string, begin: () => void])[] = [
      ['answers 500', () => void server.inject({}, { do: 'answer', code: 500 })],
      ['answers 429', () => void server.inject({}, { do: 'answer', code: 429, retryAfterSeconds: 1 })],
      [
        'answers 409 to every change',
        () => void server.inject({ verb: ['patch', 'update', 'delete', 'create'] }, { do: 'answer', code: 409 }),
      ],
      ['hangs', () => void server.inject({}, { do: 'hang' })],
      ['cuts every connection', () => void server.inject({}, { do: 'reset' })],
      [
        'loses its answers',
        () => void server.inject({ verb: ['get', 'list', 'patch', 'create', 'delete'] }, { do: 'lose-answer' }),
      ],
      ['ends watches', () => server.watches().forEach((stream) => stream.end())],
      [
        'says 410 to watches',
        () => {
          server.compact();
          server.watches().forEach((stream) => stream.expire());
        },
      ],
    ];
    const [name, begin] = this.#pick(troubles);
    this.#note(`the API server ${name}`);
    this.#apiServerIsBroken = true;
    begin();
  }

  async #heal(): Promise<void> {
    this.#note('all is well again');
    this.node.server?.clearFaults();
    this.#apiServerIsBroken = false;
    await this.#ask({ do: 'repair-disk' });
    this.#diskIsBroken = false;
    await this.#registered();
  }

  /** At any time: no allocation of a pod is lost, and no id is allocated twice. */
  async #look(): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const ledger = (await this.#ask({ do: 'ledger' })) as LedgerReport;
      const faults = [...(await lostOrDoubled(this.node, ledger, this.#pods)), ...(await this.#claimFaults(ledger))];
      if (faults.length === 0 || this.#dying) return;
      if (performance.now() > deadline) return void this.#violated(faults);
      // A kubelet on a busy machine may not have answered in time when the agent started.
      await delay(100);
      await this.#ask({ do: 'reconcile' });
    }
  }

  /** Without an API server the amounts of a claim may be unknown. */
  async #claimFaults(ledger: LedgerReport): Promise<string[]> {
    if (this.#claims === null || this.#apiServerIsBroken || this.#diskIsBroken) return [];
    return this.#claims.faults(this.node.config, ledger.units);
  }

  /** When all ended pods are past the grace period: the ledger equals the kubelet's list, and so does the disk. */
  async #compare(): Promise<void> {
    this.#note('everything settles');
    // A kubelet forgets devices of ended pods when it admits the next one.
    await this.node.kubelet.admit({
      uid: `uid-${this.name}-none`,
      namespace: 'default',
      name: 'none',
      initContainers: [],
      containers: [],
    });
    this.node.kubelet.remove(`uid-${this.name}-none`);
    await this.#settleClaims();
    let faults: string[] = [];
    // Several times: after a restart the kubelet does not always answer at once.
    const deadline = performance.now() + PATIENCE_MS;
    for (let time = 0; !this.#dying && (time < 20 || performance.now() < deadline); time += 1) {
      if (time > 5) await delay(100);
      await this.#ask({ do: 'jump', ms: GRACE_MS + 1 });
      await this.#ask({ do: 'reconcile' });
      const ledger = (await this.#ask({ do: 'ledger' })) as LedgerReport;
      faults = [
        ...(await lostOrDoubled(this.node, ledger, this.#pods)),
        ...(await leftOver(this.node, ledger)),
        ...(await this.#claimFaults(ledger)),
        ...((await this.#claims?.leftOver(this.node.config, ledger.units)) ?? []),
      ];
      if (faults.length === 0) return;
    }
    this.#violated(faults);
  }

  #ask(order: Order): Promise<unknown> {
    this.#under = order.do;
    if (this.#house === null) throw new Error('no agent runs');
    return this.#house.ask(this.name, order);
  }

  /** Keeps a fault; after the agent's death the results of pending calls do not count. */
  #violated(faults: readonly string[]): null {
    if (this.#dying) return null;
    for (const fault of faults) this.#note(`VIOLATION: ${fault}`);
    this.violations.push(...faults);
    return null;
  }

  #note(line: string): void {
    this.lines.push(`${((performance.now() - this.#begun) / 1_000).toFixed(2).padStart(7)}  ${line}`);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }
}
