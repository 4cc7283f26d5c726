import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_NAME } from '../../test/agent/cluster.js';
import { DraNode } from '../../test/agent/claims/dra-node.js';
import { eventually } from '../../test/harness/eventually.js';
import { ApiTime } from './api-time.js';

const GPUS = 8;
/** Of 100 cores each GPU holds 33 of these. */
const SHARE = { cores: 3, memory: '256Mi' } as const;
const PUBLISHED_MS = 60_000;

/** Milliseconds of each call of the kubelet, without the time in which the agent waited for the API server. */
export interface CallTimes {
  /** Calls that name no claim: the cost of a call itself. */
  readonly empty: readonly number[];
  readonly prepare: readonly number[];
  /** The same claim once more, as after a restart of the kubelet. */
  readonly again: readonly number[];
  readonly release: readonly number[];
  /** The time that was left out of `prepare`. */
  readonly api: readonly number[];
}

/** A node in mode `dra` with pods that have a claim each. */
export class ClaimNode {
  readonly #directory: string;
  readonly #node: DraNode;
  readonly #api = new ApiTime();
  #pods = 0;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#node = new DraNode(directory, GPUS);
  }

  static async start(): Promise<ClaimNode> {
    const node = new ClaimNode(await mkdtemp(join(tmpdir(), 'gm-')));
    await node.#node.cluster.start();
    await eventually(() => node.#server.all('resourceslices').length > 0, 'the GPUs are published', PUBLISHED_MS);
    node.#api.start();
    return node;
  }

  async stop(): Promise<void> {
    this.#api.stop();
    await this.#node.cluster.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Prepares this number of claims, which stay. */
  async hold(count: number): Promise<void> {
    for (let held = 0; held < count; held += 1) await this.#node.prepare(await this.#newPod());
  }

  /** Prepares a claim twice and releases it, this number of times. */
  async calls(rounds: number): Promise<CallTimes> {
    const times = { empty: [], prepare: [], again: [], release: [], api: [] } as Record<keyof CallTimes, number[]>;
    for (let round = 0; round < rounds; round += 1) {
      const name = await this.#newPod();
      times.empty.push((await this.#timed(() => this.#node.prepare())).own);
      const { own, api } = await this.#timed(() => this.#node.prepare(name));
      times.prepare.push(own);
      times.api.push(api);
      times.again.push((await this.#timed(() => this.#node.prepare(name))).own);
      times.release.push((await this.#timed(() => this.#node.unprepare(name))).own);
      this.#server.remove('resourceclaims', 'team', name);
      this.#server.remove('pods', 'team', name);
    }
    return times;
  }

  /** Milliseconds of a start of the agent until the kubelet can register it. */
  async restart(): Promise<number> {
    await this.#node.node.stopAgent();
    return (await this.#timed(() => this.#node.node.startAgent())).own;
  }

  get #server() {
    return this.#node.cluster.server;
  }

  /** A pod that the agent knows, and its claim on the next GPU, both of the returned name. */
  async #newPod(): Promise<string> {
    const name = `pod-${this.#pods}`;
    this.#node.allocate(name, { ...SHARE, device: this.#pods % GPUS, pods: [name] });
    this.#pods += 1;
    this.#server.edit('resourceclaims', 'team', name, (claim) => ({
      ...claim,
      metadata: {
        ...claim.metadata,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid: name, controller: true }],
      },
    }));
    this.#server.seed('pods', {
      metadata: { name, namespace: 'team', uid: name },
      spec: {
        nodeName: NODE_NAME,
        resourceClaims: [{ name: 'g', resourceClaimName: name }],
        containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
      },
      status: { phase: 'Pending' },
    });
    await eventually(() => this.#node.agent.pods.nameOf(name) !== null, `the agent knows ${name}`);
    return name;
  }

  async #timed(call: () => Promise<unknown>): Promise<{ readonly own: number; readonly api: number }> {
    const [start, before] = [performance.now(), this.#api.total];
    await call();
    const api = this.#api.total - before;
    return { own: performance.now() - start - api, api };
  }
}
