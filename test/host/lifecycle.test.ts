import { test } from 'tap';
import { Lifecycle, type Part } from '../../src/host/lifecycle.js';
import { silentLog } from '../../src/host/log.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';

function recorder() {
  const said: string[] = [];
  const part = (name: string, changes: Partial<Part> = {}): Part => ({
    name,
    start: async () => void said.push(`start ${name}`),
    stop: async () => void said.push(`stop ${name}`),
    ...changes,
  });
  return { said, part };
}

test('parts start in order and stop in reverse', async (t) => {
  const { said, part } = recorder();
  const lifecycle = new Lifecycle([part('a'), part('b')], silentLog());
  await lifecycle.start();
  await lifecycle.stop();
  t.same(said, ['start a', 'start b', 'stop b', 'stop a']);
});

test('a part that fails to start leaves no other part running', async (t) => {
  const { said, part } = recorder();
  const failing = part('b', { start: () => Promise.reject(new Error('port in use')) });
  await t.rejects(new Lifecycle([part('a'), failing, part('c')], silentLog()).start(), { message: 'port in use' });
  t.same(said, ['start a', 'stop a']);
});

test('a part that fails to stop, or hangs, does not keep other parts from stopping', async (t) => {
  const clock = new ManualClock();
  const { said, part } = recorder();
  const parts = [
    part('a'),
    part('hangs', { stop: () => new Promise(() => undefined) }),
    part('fails', { stop: () => Promise.reject(new Error('no')) }),
  ];
  const lifecycle = new Lifecycle(parts, silentLog(), 50, clock);
  await lifecycle.start();
  const stopping = lifecycle.stop();
  await eventually(() => {
    clock.advance(10);
    return said.includes('stop a');
  });
  await stopping;
  t.equal(said.at(-1), 'stop a');
});

test('a stop during the start stops the started parts and starts no others', async (t) => {
  const { said, part } = recorder();
  let go = (): void => undefined;
  const slow = part('slow', { start: () => new Promise<void>((resolve) => (go = resolve)) });
  const lifecycle = new Lifecycle([part('a'), slow, part('c')], silentLog());
  const starting = lifecycle.start();
  await Promise.resolve();
  await lifecycle.stop();
  go();
  await t.rejects(starting, { message: 'stopped while starting' });
  t.same(said, ['start a', 'stop a', 'stop slow']);
});
