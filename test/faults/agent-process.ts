import { appendFileSync } from 'node:fs';
import pino from 'pino';
import { isOffered } from '../../src/gpu/ledger/gpu-mode.js';
import type { Agent } from '../../src/agent/agent.js';
import { buildAgent } from '../../src/agent/run.js';
import { systemClock, type Clock } from '../../src/host/clock.js';
import { nameSteps, runBehind, StepGate } from './named-steps.js';
import type { LedgerReport, Letter, Order, Reply } from './orders.js';

/**
 * The program whose agents are killed: each is the real agent behind a gate that knows its steps. It obeys its parent.
 */

nameSteps();

/** The machine's clock, which the parent can set. Timers behave as on Linux: they count time, not dates. */
class SettableClock implements Clock {
  readonly after = systemClock.after.bind(systemClock);
  readonly every = systemClock.every.bind(systemClock);
  #offsetMs = 0;

  now(): number {
    return Date.now() + this.#offsetMs;
  }

  jump(ms: number): void {
    this.#offsetMs += ms;
  }
}

interface Lodger {
  readonly gate: StepGate;
  readonly clock: SettableClock;
  agent: Agent | null;
}

const lodgers = new Map<string, Lodger>();

function send(reply: Reply): void {
  process.send?.(reply);
}

async function start(name: string, order: Extract<Order, { do: 'start' }>): Promise<void> {
  const gate = new StepGate(order.directory, (step) => send({ kind: 'frozen', agent: name, step }));
  const clock = new SettableClock();
  const lodger: Lodger = { gate, clock, agent: null };
  lodgers.set(name, lodger);
  if (order.freezeAfter !== null) gate.freezeAfter(order.freezeAfter);
  const log = pino(
    { level: 'info', base: null },
    { write: (line: string) => appendFileSync(`${order.directory}.log`, line) },
  );
  await runBehind(gate, async () => {
    const agent = await buildAgent(order.config, log, { clock, graceMs: order.graceMs });
    await agent.start();
    lodger.agent = agent;
  });
}

async function obey(name: string, order: Order): Promise<unknown> {
  if (order.do === 'start') return start(name, order);
  const lodger = lodgers.get(name);
  if (lodger === undefined) throw new Error(`no agent ${name}`);
  const { gate, clock, agent } = lodger;
  switch (order.do) {
    case 'freeze':
      return gate.freezeAfter(order.steps);
    case 'break-disk':
      return gate.breakDisk(order.error, order.skip, order.times);
    case 'repair-disk':
      return gate.repairDisk();
    case 'jump':
      return clock.jump(order.ms);
    case 'reconcile':
      return agent?.allocator.reconcile();
    case 'knows-pod':
      return agent !== null && agent.pods.uidOf(order.namespace, order.name) !== null;
    case 'ledger': {
      const state = agent?.allocator.state;
      return {
        allocations: [...(state?.allocations.values() ?? [])],
        openHalves: state?.halves.length ?? 0,
        legacy: state?.legacy ?? [],
        units: [...(state?.units.values() ?? [])],
        offered: state?.node.gpus.map(({ gpu }) => gpu.uuid).filter((uuid) => isOffered(state, uuid, 'plugin')) ?? [],
      } satisfies LedgerReport;
    }
    case 'stop':
      lodgers.delete(name);
      return agent?.stop();
  }
}

process.on('message', (letter: Letter) => {
  obey(letter.agent, letter.order).then(
    (value) => send({ kind: 'done', id: letter.id, value }),
    (error: unknown) => send({ kind: 'failed', id: letter.id, reason: (error as Error).stack ?? String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
