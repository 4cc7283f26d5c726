import { spawn, type ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { CORE_LIMIT_KEY, PRIORITY_KEY } from '../../src/gpu/annotations.js';
import { outcome, type Container } from './container.js';
import type { RealNode } from './real-node.js';

/** Half a GPU each, and what other containers leave idle. */
const SHARE = 50;
const BLOCKS = 8;
const SOFT = { [CORE_LIMIT_KEY]: '100' };

/** Annotations of the service and of the training; null: without limits. */
const SHARINGS = {
  'time slicing': null,
  'hard halves': { service: {}, training: {} },
  'equal shares': { service: SOFT, training: SOFT },
  priority: {
    service: { ...SOFT, [PRIORITY_KEY]: 'high' },
    training: { ...SOFT, [PRIORITY_KEY]: 'low' },
  },
} as const satisfies Record<string, Record<'service' | 'training', Readonly<Record<string, string>>> | null>;

/** For starting, and for learning the costs of launches; the service leaves out its first two seconds too. */
const WARM_UP_S = 2;

export interface ServicePrograms {
  /** native/bench/tenant.c, compiled. */
  readonly tenant: string;
  /** native/test/gpu/spin.c, compiled. */
  readonly spin: string;
}

/**
 * Latencies of a service whose requests arrive at random, alone and beside a training of kernels that take `kernelUs`,
 * one line for each way of sharing the GPU; and the kernels of the training a second. `pattern`: of
 * native/bench/tenant.c.
 */
export async function* servicesBesideTraining(
  node: RealNode,
  { tenant, spin }: ServicePrograms,
  { pattern, kernelUs, seconds }: { readonly pattern: string; readonly kernelUs: number; readonly seconds: number },
): AsyncGenerator<string> {
  const serve = [tenant, String(seconds + WARM_UP_S), pattern];
  const train = [spin, String(seconds + WARM_UP_S), String(kernelUs)];
  const alone = latenciesOf(await saidBy(started(null, serve), seconds));
  yield `alone: ${textOf(alone, alone)}`;
  const aloneRate = Number(await saidBy(started(null, train), seconds));
  for (const [sharing, annotations] of Object.entries(SHARINGS)) {
    const containers: Container[] = [];
    const place = async (whose: 'service' | 'training'): Promise<Container | null> => {
      if (annotations === null) return null;
      const container = await node.run(SHARE, BLOCKS, annotations[whose]);
      containers.push(container);
      return container;
    };
    try {
      const [service, training] = [await place('service'), await place('training')];
      const trained = saidBy(started(training, train), seconds);
      await delay(1000);
      const [served, rate] = await Promise.all([saidBy(started(service, serve), seconds), trained]);
      const part = (100 * Number(rate)) / aloneRate;
      yield `${sharing}: ${textOf(latenciesOf(served), alone)}, the training ${part.toFixed(1)} % of alone`;
    } finally {
      for (const container of containers) node.remove(container);
    }
  }
}

function started(container: Container | null, command: readonly string[]): ChildProcess {
  return container === null ? spawn(command[0] ?? '', command.slice(1)) : container.start(command);
}

async function saidBy(program: ChildProcess, seconds: number): Promise<string> {
  const { status, stdout, stderr } = await outcome(program, seconds + 60);
  if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
  return stdout.trim();
}

/** In milliseconds, ascending. */
function latenciesOf(text: string): number[] {
  return text
    .split('\n')
    .map((line) => Number(line) / 1000)
    .toSorted((a, b) => a - b);
}

function textOf(latencies: readonly number[], alone: readonly number[]): string {
  const at = (sorted: readonly number[], part: number): number => sorted[Math.floor(part * sorted.length)] ?? NaN;
  const [p50, p99] = [at(latencies, 0.5), at(latencies, 0.99)];
  const ratio = p99 / at(alone, 0.99);
  return `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (${ratio.toFixed(2)} x) of ${latencies.length}`;
}
