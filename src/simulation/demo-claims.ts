import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { decodeLimits } from '../abi/limits-file.js';
import { SHARE_LIMIT_KEY } from '../gpu/annotations.js';
import { CLAIM_RECORDS_DIRECTORY } from '../agent/claims/claim-records.js';
import { describeClaim } from '../gpu/ledger/claim-unit.js';
import type { Log } from '../host/log.js';
import { ClaimCluster, type ShareRequest, type StartedPod } from './claim-cluster.js';
import { DemoPrograms } from './demo-programs.js';
import { expect, type Step } from './demo-step.js';

/** One GPU of 16 GiB. */
const GPUS = '{"gpus":[{}]}';
/** The agent learns of an annotation by a watch. */
const NOTICE_MS = 30_000;

type Started = Extract<StartedPod, { readonly ok: true }>;

/** The second part of the demonstration: a node that gives its GPU through resource claims, and programs in it. */
export class ClaimAct {
  readonly cluster: ClaimCluster;
  readonly programs: DemoPrograms;
  #started = false;

  constructor(directory: string, nativePath: string, log: Log) {
    // A process can use one machine of the simulated driver library, and the first part of the demonstration uses it.
    // So this agent's GPUs have no figures, and only the programs use the library.
    this.cluster = new ClaimCluster({ directory, gpus: GPUS, log, config: { nativePath } });
    this.programs = new DemoPrograms(join(directory, 'machine'), this.cluster.node.config.simNodePath ?? '');
  }

  async start(): Promise<void> {
    this.#started = true;
    await this.cluster.start();
  }

  /** Does nothing if this part was not started, or has ended. */
  async stop(): Promise<void> {
    this.programs.end();
    if (!this.#started) return;
    this.#started = false;
    await this.cluster.stop();
  }

  /** A new claim is allocated, and a pod starts with it. */
  async run(pod: string, claim: string, request: ShareRequest): Promise<Started> {
    this.cluster.createClaim(claim, request);
    expect(this.cluster.schedule(claim), 'no GPU had room');
    const started = await this.share(pod, claim);
    const got = await limitsOf(started.slice);
    const wanted = `${request.cores} cores, ${request.memoryMib} MiB`;
    expect(got === wanted, `may use ${got} instead of ${wanted}`);
    return started;
  }

  /** Another pod starts with an allocated claim. */
  async share(pod: string, claim: string): Promise<Started> {
    const started = await this.cluster.startPod(pod, claim);
    if (started.ok) return started;
    expect(false, `refused: ${started.reason}`);
    throw new Error(started.reason);
  }

  units(): string {
    const { units } = this.cluster.node.agent.allocator.state;
    return [...units.values()]
      .map((unit) => JSON.stringify([unit.id, unit.devices, unit.consumers]))
      .sort()
      .join('\n');
  }
}

async function limitsOf(slice: string): Promise<string> {
  const decoded = decodeLimits(await readFile(join(slice, 'vgpu.limits')));
  if (!decoded.ok) return decoded.reason;
  const [device] = decoded.limits.devices;
  return `${device?.share ?? 0} cores, ${(device?.memoryBytes ?? 0) / 2 ** 20} MiB`;
}

async function become(slice: string, wanted: string): Promise<void> {
  for (let waitedMs = 0; (await limitsOf(slice)) !== wanted; waitedMs += 50) {
    expect(waitedMs < NOTICE_MS, `the slice may still use ${await limitsOf(slice)}`);
    await delay(50);
  }
}

/** The steps in their order; the first one starts the node, the last one stops it. */
export const CLAIM_STEPS: readonly Step<ClaimAct>[] = [
  {
    title: 'a second node gives its GPU through resource claims',
    async run(act) {
      await act.start();
      return `${act.cluster.published()} GPU in its ResourceSlice`;
    },
  },
  {
    title: 'the program of a claim for 30 cores and 4 GiB sees its slice',
    async run(act) {
      const { container } = await act.run('first', 'thirty', { cores: 30, memoryMib: 4096 });
      const total = await act.programs.run(container, ['total']);
      expect(total === 'total 4096', `sees ${total}`);
      return '4096 MiB';
    },
  },
  {
    title: 'two pods share a claim for 50 cores on that GPU, and its limits',
    async run(act) {
      const { slice } = await act.run('second', 'fifty', { cores: 50, memoryMib: 8192 });
      const other = await act.share('third', 'fifty');
      expect(other.slice === slice, `they got ${slice} and ${other.slice}`);
      return limitsOf(slice);
    },
  },
  {
    title: 'an annotation of the claim lowers its share while both pods run',
    async run(act) {
      const { slice } = await act.share('third', 'fifty');
      act.cluster.annotateClaim('fifty', { [SHARE_LIMIT_KEY]: '20' });
      await become(slice, '20 cores, 8192 MiB');
      act.cluster.annotateClaim('fifty', {});
      await become(slice, '50 cores, 8192 MiB');
      return '20 cores, and 50 again without it';
    },
  },
  {
    title: 'the agent refuses a claim of which the scheduler thought that it has room',
    async run(act) {
      act.cluster.createClaim('forty', { cores: 40, memoryMib: 1024 });
      act.cluster.schedule('forty', true);
      const started = await act.cluster.startPod('fourth', 'forty');
      expect(!started.ok, 'was prepared');
      const reason = started.ok ? '' : started.reason;
      expect(/holds? 80 of 100 cores/.test(reason), `refused for another reason: ${reason}`);
      await act.cluster.endPod('fourth', 'forty');
      return reason;
    },
  },
  {
    title: 'a claim without room waits, and gets its share when a pod ends',
    async run(act) {
      act.cluster.createClaim('patient', { cores: 40, memoryMib: 1024 });
      expect(!act.cluster.schedule('patient'), 'was allocated');
      await act.cluster.endPod('first', 'thirty');
      expect(act.cluster.schedule('patient'), 'no GPU had room');
      return limitsOf((await act.share('fifth', 'patient')).slice);
    },
  },
  {
    title: 'the agent restarts, and every claim stays as it was',
    async run(act) {
      const before = act.units();
      await act.cluster.restartAgent();
      expect(act.units() === before, 'the ledger changed');
      const names = [...act.cluster.node.agent.allocator.state.units.values()].map(({ claim }) => describeClaim(claim));
      return names.sort().join(', ');
    },
  },
  {
    title: 'all pods with claims end, and nothing of them is left',
    async run(act) {
      for (const [pod, claim] of [
        ['second', 'fifty'],
        ['third', 'fifty'],
        ['fifth', 'patient'],
      ] as const)
        await act.cluster.endPod(pod, claim);
      const { virtualManagerPath, cdiPath } = act.cluster.node.config;
      const files = [...(await readdir(virtualManagerPath, { recursive: true })), ...(await readdir(cdiPath))];
      const left = files.filter((name) => name !== CLAIM_RECORDS_DIRECTORY);
      expect(left.length === 0, `files are left: ${left.join(', ')}`);
      await act.stop();
      return 'no claim, no directory, no CDI file';
    },
  },
];
