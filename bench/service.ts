import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PEER_SHARINGS, servePeers } from './peers/service.js';
import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { SimulatedMachine } from './sim/machine.js';
import { serve, WARM_UP_S, type Limits, type Neighbours, type Served } from './sim/neighbours.js';
import { shortestP99Ms } from './sim/requests.js';

const SECONDS = 20;
const QUICK_SECONDS = 8;
/** The monitor of HAMi acts every five seconds. */
const PEER_SECONDS = 16;
/** Loads, in percent of the service's share of half the GPU. */
const SHARE = 50;
const LOADS = [30, 60, 80] as const;
const JUDGED_LOAD = 60;
/** A quick run has so many samples of what has a goal, and of the service alone. */
const SAMPLES = 3;
/** One kernel of the training. Nothing interrupts a kernel, so a request may wait for one. */
const KERNEL_MS = 20;

const SERVICES = {
  infer: 'requests of 20 to 60 kernels of 50 us to 3 ms',
  decode: 'tokens of 30 kernels of 60 us',
} as const;

const SOFT: Limits = { share: SHARE, softLimit: 100 };
const HARD: Limits = { share: SHARE, softLimit: null };

const SHARINGS = {
  exclusive: { service: null, batch: 'none' },
  'time slicing': { service: null, batch: null },
  'hard halves': { service: HARD, batch: HARD },
  'equal shares': { service: SOFT, batch: SOFT },
  priority: { service: { ...SOFT, priority: 'high' }, batch: { ...SOFT, priority: 'low' } },
} as const satisfies Record<string, Pick<Neighbours, 'service' | 'batch'>>;

const JUDGED_SHARINGS = new Set(['exclusive', 'equal shares', 'priority']);

/**
 * What a service feels beside a training whose kernels take 20 ms, on one simulated GPU: latencies of requests that
 * arrive at random (Poisson), and of a decoder's tokens, each against the GPU without the training; and what the
 * training gets of the rest. With the driver's time slices alone, hard halves, equal shares and priority; and, as root,
 * behind the libraries of other projects in DIR (docs/reference/comparison.md). Nothing interrupts a kernel: a request
 * may wait for one of the training; what that alone costs is computed beside. `--quick` takes three samples of what has
 * a goal, at one load.
 *
 *     npm run bench -- service [--quick] [--peers DIR] [infer|decode]
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const quick = args.includes('--quick');
  const at = args.indexOf('--peers');
  const peers = at < 0 ? null : resolve(args[at + 1] ?? '.');
  if (peers !== null) note(readFileSync(join(peers, 'versions'), 'utf8').trim());
  const names = Object.keys(SERVICES) as (keyof typeof SERVICES)[];
  const wanted = names.filter((name) => args.includes(name));
  const machine = await SimulatedMachine.open(1);
  const agent = await SteeringAgent.start(machine);
  try {
    for (const service of wanted.length === 0 ? names : wanted)
      for (const load of quick ? [JUDGED_LOAD] : LOADS) {
        let exclusiveP99: number | null = null;
        const tell = (sharing: string, { p50Ms, p99Ms, batchPart }: Served): void => {
          const row = `${service} at ${load} % of its share, ${sharing}`;
          report(measured(`${row}: p50`, p50Ms, 'ms'));
          report(measured(`${row}: p99`, p99Ms, 'ms', exclusiveP99));
          if (exclusiveP99 === null) return;
          report(measured(`${row}: the training's part of the rest`, 100 * batchPart, '%', 100));
        };
        const work = { pattern: `${service}:${(load * SHARE) / 100}`, kernelMs: KERNEL_MS };
        const seconds = quick ? QUICK_SECONDS : SECONDS;
        for (let sample = 0; sample < (quick ? SAMPLES : 1); sample += 1) {
          // What a sample is compared with is of the same sample.
          exclusiveP99 = null;
          for (const [sharing, limits] of Object.entries(SHARINGS)) {
            if (sample > 0 && !JUDGED_SHARINGS.has(sharing)) continue;
            const served = await serve(machine, agent, { ...work, ...limits }, seconds);
            tell(sharing, served);
            exclusiveP99 ??= served.p99Ms;
          }
        }
        const bound = (kernelMs: number): number =>
          shortestP99Ms(service, (load * SHARE) / 100, seconds + WARM_UP_S, kernelMs);
        const row = `${service} at ${load} % of its share, computed for one kernel of the training`;
        report(measured(`${row}: p99`, bound(KERNEL_MS), 'ms', bound(0)));
        if (peers === null) continue;
        for (const [sharing, how] of Object.entries(PEER_SHARINGS))
          tell(sharing, await servePeers(peers, how, { ...work, share: SHARE }, Math.max(seconds, PEER_SECONDS)));
      }
  } finally {
    await agent.stop();
    await machine.close();
  }
  for (const [name, what] of Object.entries(SERVICES)) note(`${name}: ${what}`);
}
