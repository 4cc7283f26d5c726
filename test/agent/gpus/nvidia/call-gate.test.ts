import fc from 'fast-check';
import { test } from 'tap';
import { DriverError } from '../../../../src/agent/gpus/driver.js';
import { CallGate } from '../../../../src/agent/gpus/nvidia/call-gate.js';
import { ManualClock } from '../../../manual-clock.js';

interface Pending {
  readonly name: string;
  answer(value: string): void;
  fail(error: Error): void;
}

/** A gate whose calls the test answers. */
function bench(limit = 2) {
  const clock = new ManualClock();
  const gate = new CallGate({ clock, timeoutMs: 5000, limit });
  const started: Pending[] = [];
  const outcome = new Map<string, string>();
  const ask = (target: string, name: string): void => {
    gate
      .run(target, () => new Promise<string>((answer, fail) => void started.push({ name, answer, fail })))
      .then(
        (value) => outcome.set(name, value),
        (error: unknown) =>
          outcome.set(
            name,
            error instanceof DriverError ? `${error.code}: ${error.message}` : `failed: ${(error as Error).message}`,
          ),
      );
  };
  const call = (name: string): Pending => {
    const found = started.find((pending) => pending.name === name);
    if (found === undefined) throw new Error(`${name} has not started`);
    return found;
  };
  return { clock, ask, call, outcome, startedNames: () => started.map((pending) => pending.name) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('calls to one GPU run one after another, in order', async (t) => {
  const { ask, call, startedNames, outcome } = bench();
  for (const name of ['a', 'b', 'c']) ask('GPU 0', name);
  t.same(startedNames(), ['a']);
  call('a').answer('A');
  await settled();
  t.same(startedNames(), ['a', 'b']);
  call('b').fail(new Error('no'));
  await settled();
  t.same(startedNames(), ['a', 'b', 'c']);
  t.same(
    [...outcome],
    [
      ['a', 'A'],
      ['b', 'failed: no'],
    ],
  );
});

test('GPUs do not wait for each other, up to the limit', async (t) => {
  const { ask, call, startedNames } = bench();
  for (const target of ['GPU 0', 'GPU 1', 'GPU 2']) ask(target, target);
  t.same(startedNames(), ['GPU 0', 'GPU 1']);
  call('GPU 1').answer('');
  await settled();
  t.same(startedNames(), ['GPU 0', 'GPU 1', 'GPU 2']);
});

test('a call that exceeds the time limit rejects, and its GPU is closed until the call returns', async (t) => {
  const { clock, ask, call, startedNames, outcome } = bench();
  ask('GPU 0', 'slow');
  ask('GPU 0', 'behind');
  clock.advance(5000);
  await settled();
  t.equal(outcome.get('slow'), 'timeout: GPU 0 does not answer within 5000 ms');
  t.equal(outcome.get('behind'), 'timeout: GPU 0 does not answer within 5000 ms');
  clock.advance(7000);
  ask('GPU 0', 'later');
  ask('GPU 1', 'other');
  await settled();
  t.equal(outcome.get('later'), 'timeout: GPU 0 does not answer: the last call has not returned, overdue for 7 s');
  t.same(startedNames(), ['slow', 'other']);
  call('slow').answer('at last');
  await settled();
  ask('GPU 0', 'again');
  call('again').answer('fine');
  await settled();
  t.equal(outcome.get('again'), 'fine');
});

test('when calls that hang hold every thread, other callers get an error in time', async (t) => {
  const { clock, ask, call, startedNames, outcome } = bench();
  ask('GPU 0', 'dead 0');
  ask('GPU 1', 'dead 1');
  clock.advance(1000);
  ask('GPU 2', 'waiting');
  clock.advance(5000);
  await settled();
  t.equal(
    outcome.get('waiting'),
    'unreachable: no call can be made within 5000 ms: those to GPU 0 and GPU 1 do not return',
  );
  call('dead 1').answer('');
  await settled();
  t.same(startedNames(), ['dead 0', 'dead 1'], 'a caller that gave up waiting is not called any more');
  ask('GPU 2', 'next');
  t.same(startedNames(), ['dead 0', 'dead 1', 'next']);
});

test('a GPU has one call at a time, the limit holds, and every caller gets an answer, whatever happens', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('ask' as const), target: fc.nat(3) }),
    fc.record({ kind: fc.constant('answer' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 6000 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new ManualClock();
      const gate = new CallGate({ clock, timeoutMs: 5000, limit: 2 });
      let running: { target: string; end: () => void }[] = [];
      let [asked, answered, worst] = [0, 0, 0];
      const check = (): void => {
        const targets = running.map(({ target }) => target);
        if (new Set(targets).size !== targets.length) throw new Error(`two calls at once: ${targets.join()}`);
        worst = Math.max(worst, targets.length);
      };
      for (const step of steps) {
        if (step.kind === 'ask') {
          const target = `GPU ${step.target}`;
          asked++;
          const call = () =>
            new Promise<void>((resolve) => {
              const entry = { target, end: resolve };
              running.push(entry);
              check();
            });
          gate.run(target, call).then(
            () => answered++,
            () => answered++,
          );
        } else if (step.kind === 'answer') {
          const done = running[step.which % Math.max(1, running.length)];
          running = running.filter((entry) => entry !== done);
          done?.end();
        } else {
          clock.advance(step.ms);
        }
        await settled();
      }
      clock.advance(5000);
      await settled();
      return worst <= 2 && asked === answered;
    }),
    { numRuns: 100 },
  );
  t.pass('100 histories');
});
