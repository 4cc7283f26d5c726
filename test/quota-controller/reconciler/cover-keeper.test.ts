import { test, type Test } from 'tap';
import { silentLog } from '../../../src/host/log.js';
import { CoverKeeper } from '../../../src/quota-controller/reconciler/cover-keeper.js';
import { coverText, hashOf, readCover } from '../../../src/quota-controller/workloads/cover-text.js';
import { KnownWorkloads } from '../../../src/quota-controller/workloads/known-workloads.js';
import { OwnedPods } from '../../../src/quota-controller/workloads/owned-pods.js';
import type { Account } from '../../../src/quota-controller/workloads/workload-object.js';
import { CoverObjects } from '../../../src/quota-controller/store/cover-objects.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { clientTo, quotaServer } from '../setting.js';

/** Covered objects as a test says. */
class SaidPods extends OwnedPods {
  said: readonly (readonly [string, Account])[] = [];
  read = 0;

  constructor() {
    super(new KnownWorkloads());
  }

  override *covered(): Generator<readonly [string, Account]> {
    this.read++;
    yield* this.said;
  }
}

async function place(t: Test) {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const [owned, clock] = [new SaidPods(), new ManualClock()];
  const state = { isComplete: true };
  const isComplete = (): boolean => state.isComplete;
  const keeper = new CoverKeeper({ api: client, owned, isComplete, clock, log: silentLog() });
  t.teardown(async () => {
    await keeper.stop();
    client.close();
    await server.stop();
  });
  const texts = async (): Promise<Readonly<Record<string, string>>> =>
    Object.fromEntries([...(await new CoverObjects(client).list())].map(([group, { text }]) => [group, text]));
  /** Lets a round begin and end. */
  const round = async (ms = 5_000): Promise<void> => {
    const before = owned.read;
    await eventually(() => {
      clock.advance(ms);
      return owned.read > before;
    }, 'a round');
  };
  return { client, owned, clock, state, keeper, texts, round };
}

const of = (group: string, ...uids: readonly string[]): (readonly [string, Account])[] =>
  uids.map((uid) => [uid, { group, types: {} }]);
const textOf = (...uids: readonly string[]): string => coverText([{ types: {}, hashes: uids.map(hashOf) }]);

test('a text of covered objects is read as it was written, whatever their order', (t) => {
  const types = { gpu: 'A100' };
  const covered = [
    { types, hashes: [hashOf('b'), hashOf('a')] },
    { types: {}, hashes: [hashOf('c')] },
  ];
  const text = coverText(covered);
  t.equal(coverText([...covered].reverse()), text);
  const sorted = [hashOf('a'), hashOf('b')].sort((a, b) => a - b);
  t.strictSame(
    new Set(readCover(text)),
    new Set([
      { types, hashes: sorted },
      { types: {}, hashes: [hashOf('c')] },
    ]),
  );
  t.end();
});

test('what charges cover is written when it changes, and for the last time at the end', async (t) => {
  const { owned, keeper, state, texts, round } = await place(t);
  state.isComplete = false;
  keeper.start();
  owned.said = [...of('one', 'a', 'b'), ...of('two', 'c')];
  state.isComplete = true;
  await round();
  await eventually(async () => 'two' in (await texts()), 'the texts');
  t.strictSame(await texts(), { one: textOf('a', 'b'), two: textOf('c') });
  owned.said = of('one', 'b');
  await round();
  await eventually(async () => !('two' in (await texts())), 'the text of two to go');
  await eventually(async () => (await texts())['one'] === textOf('b'), 'the text of one');
  owned.said = of('three', 'd');
  await keeper.stop();
  t.strictSame(await texts(), { three: textOf('d') });
});

test('a replica that does not know all objects writes nothing', async (t) => {
  const { client, keeper, state, texts } = await place(t);
  await new CoverObjects(client).put('one', textOf('a'), null);
  state.isComplete = false;
  await keeper.stop();
  t.strictSame(await texts(), { one: textOf('a') });
});

test('the text of another replica is replaced in the round after it was met', async (t) => {
  const { client, owned, keeper, texts, round } = await place(t);
  keeper.start();
  owned.said = of('one', 'a');
  await round();
  await eventually(async () => 'one' in (await texts()), 'the text');
  const objects = new CoverObjects(client);
  const known = (await objects.list()).get('one') ?? null;
  await objects.put('one', textOf('x'), known);
  owned.said = of('one', 'a', 'b');
  await round();
  await round();
  await eventually(async () => (await texts())['one'] === textOf('a', 'b'), 'the text of this replica');
});

test('a large text is written less often', async (t) => {
  const { owned, clock, keeper, texts, round } = await place(t);
  keeper.start();
  const many = Array.from({ length: 10_000 }, (_, index) => `uid-${index}`);
  owned.said = of('one', ...many);
  await round();
  await eventually(async () => 'one' in (await texts()), 'the text');
  const writtenAt = clock.now();
  owned.said = of('one', ...many, 'more');
  const last = textOf(...many, 'more');
  await eventually(async () => {
    await round(1_000);
    return (await texts())['one'] === last;
  }, 'the second text');
  t.ok(clock.now() - writtenAt >= last.length / 4, `after ${clock.now() - writtenAt} ms`);
});
