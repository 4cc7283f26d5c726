import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import { Quota, type Command, type GroupStatus } from '../../../src/quota/index.js';
import { MemoryStore, SharedMemory } from '../../../src/quota/store/memory-store.js';

const HISTORIES = 50;
const STEPS = 60;
const ENGINES = 3;
const MINUTE_MS = 60_000;
const CORES = 'limits.cpu';
const HOURS = `cash/${CORES}`;
const GROUPS = ['root', 'g', 'h'];

const WORKLOADS = ['w0', 'w1', 'w2', 'w3'];
const reference = (name: string) => ({ kind: 'Deployment', namespace: 'ns', name });

/** Deterministic pseudo-random numbers. */
function generator(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 1 | state) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 14)) >>> 0) % below;
  };
}

/** A grant or a loan that ends within the history, or a change of a workload's replicas or pods. */
function commandOf(random: (below: number) => number, step: number, now: number): Command {
  const name = WORKLOADS[random(WORKLOADS.length)] as string;
  const [group, other] = random(2) === 0 ? (['g', 'h'] as const) : (['h', 'g'] as const);
  const until = now + (1 + random(90)) * MINUTE_MS;
  switch (random(9)) {
    case 0:
    case 1:
      return { type: 'grant', id: `grant-${step}`, group, key: HOURS, amount: 1 + random(6), expiresAt: until };
    case 2:
    case 3:
      return {
        type: 'loan',
        id: `loan-${step}`,
        lender: group,
        borrower: other,
        amounts: { [CORES]: 1 + random(4) },
        until,
      };
    case 4:
      return {
        type: 'admit',
        workload: reference(name),
        group,
        podSets: [{ count: 1 + random(6), limits: { cpu: 1 } }],
      };
    case 5:
      return { type: 'scale', workload: reference(name), replicas: random(12) };
    case 6:
      return { type: 'podStarted', pod: `pod-${step}`, workload: reference(name) };
    case 7:
      return { type: 'podStopped', pod: `pod-${random(1 + step)}` };
    default:
      return random(3) === 0 ? { type: 'release', workload: reference(name) } : { type: 'tick' };
  }
}

/** What a user sees of a group. */
function plain(status: GroupStatus | null): string {
  const { hard, used, budgets, workloads } = status ?? {};
  const texts = (amounts?: ReadonlyMap<string, bigint>): readonly string[] =>
    [...(amounts ?? [])].map(([key, amount]) => `${key}=${amount}`).sort();
  const sums = (budgets ?? []).map(({ key, left, granted }) => `${key}: ${left} left, ${granted} granted`);
  return JSON.stringify([texts(hard), texts(used), sums, workloads]);
}

test(`in ${HISTORIES} histories grants and loans end alike with one engine, and with engines that come and go`, async (t) => {
  let [ended, replaced, allowed] = [0, 0, 0];
  for (let run = 0; run < HISTORIES; run++) {
    const random = generator(run);
    const [memory, alone] = [new SharedMemory(), new Quota({ clock: () => 0 })];
    const open = (): Promise<QuotaEngine> =>
      createEngine({ store: new MemoryStore(memory), clock: () => 0, pause: async () => undefined });
    const engines = await Promise.all(Array.from({ length: ENGINES }, open));
    let now = 0;
    const differences: string[] = [];
    const both = async (command: Command): Promise<void> => {
      const at = random(ENGINES);
      if (random(10) === 0) {
        await engines[at]?.close();
        engines[at] = await open();
        replaced++;
      }
      const [mine, theirs] = [alone.execute(command, now), await engines[at]?.execute(command, now)];
      if (mine.allowed) allowed++;
      if (theirs?.code !== mine.code) differences.push(`${command.type} at ${now / MINUTE_MS} min: ${theirs?.code}`);
      // As the watch of the ledgers does: an engine that reads a grant after its end ends it late, with later usage.
      for (const engine of engines) await engine.catchUp();
    };
    await both({ type: 'createGroup', name: 'root', hard: { [CORES]: 20, [HOURS]: 100 } });
    for (const name of ['g', 'h'])
      await both({ type: 'createGroup', name, parent: 'root', hard: { [CORES]: 8, [HOURS]: 10 } });
    for (let step = 0; step < STEPS; step++) {
      now += random(12) * MINUTE_MS;
      const command = commandOf(random, step, now);
      if (command.type === 'loan' || command.type === 'grant') ended++;
      await both(command);
    }
    now += 100 * MINUTE_MS;
    await both({ type: 'tick' });
    for (const engine of engines) {
      await engine.catchUp();
      await engine.execute({ type: 'tick' }, now);
      for (const name of GROUPS)
        if (plain(engine.status(name, now)) !== plain(alone.status(name, now)))
          differences.push(`${name}: ${plain(engine.status(name, now))}, alone ${plain(alone.status(name, now))}`);
      await engine.close();
    }
    if (!t.same(differences, [], `history ${run}`)) return;
  }
  t.comment(`${ended} grants and loans, ${replaced} engines replaced, ${allowed} commands allowed`);
  t.ok(replaced > HISTORIES && ended > 10 * HISTORIES && allowed > 20 * HISTORIES);
});
