import fc from 'fast-check';
import { test } from 'tap';
import { LayeredMap } from '../../../../src/quota/core/state/layered-map.js';
import { TimerQueue, type Timer } from '../../../../src/quota/core/state/timers.js';

type Step = { readonly key: string; readonly value: number | null };
const steps = fc.array(fc.record<Step>({ key: fc.constantFrom('a', 'b', 'c', 'd'), value: fc.option(fc.nat(9)) }), {
  maxLength: 30,
});

function apply(
  map: { set(key: string, value: number): unknown; delete(key: string): unknown },
  all: readonly Step[],
): void {
  for (const { key, value } of all) {
    if (value === null) map.delete(key);
    else if (map instanceof LayeredMap && map.has(key)) map.replace(key, value);
    else map.set(key, value);
  }
}

const content = (map: { entries(): Iterable<[string, number]> }) => JSON.stringify([...map.entries()].sort());

test('a forked map is independent, and a merged fork equals its origin', (t) => {
  fc.assert(
    fc.property(steps, steps, steps, (first, second, third) => {
      const below = new LayeredMap<string, number>();
      const model = new Map<string, number>();
      apply(below, first);
      apply(model, first);
      const untouched = content(model);
      const fork = below.fork();
      apply(fork, second);
      apply(model, second);
      const twice = fork.fork();
      apply(twice, third);
      const between = content(fork) === content(model) && fork.size === model.size;
      apply(model, third);
      const seen = new Map<string, number>();
      twice.forEach((value, key) => seen.set(key, value));
      const isKnown = ['a', 'b', 'c', 'd'].every((key) => twice.isChanged(key) || twice.get(key) === fork.get(key));
      const apart =
        isKnown &&
        twice.changedValues().every((value) => [...model.values()].includes(value)) &&
        content(below) === untouched &&
        content(twice) === content(model) &&
        twice.size === model.size &&
        content(seen) === content(model);
      fork.applyFork(twice);
      below.applyFork(fork);
      return (
        between &&
        apart &&
        content(below) === content(model) &&
        below.size === model.size &&
        ['a', 'b', 'c', 'd'].every((key) => below.get(key) === model.get(key) && below.has(key) === model.has(key))
      );
    }),
    { numRuns: 500 },
  );
  t.end();
});

const timer = (at: number, subject: string): Timer => ({ at, subject, kind: 'podForgotten', group: '' });

test('timers fire by time, and timers of the same time in the order in which they were set', (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 60 }), fc.nat(20), (times, now) => {
      const queue = new TimerQueue();
      times.forEach((at, index) => queue.push(timer(at, `${index}`)));
      const expected = times
        .map((at, index) => ({ at, index }))
        .filter(({ at }) => at <= now)
        .sort((a, b) => a.at - b.at || a.index - b.index)
        .map(({ index }) => `${index}`);
      const taken: string[] = [];
      for (let next = queue.takeDue(now); next !== null; next = queue.takeDue(now)) taken.push(next.subject);
      return taken.join() === expected.join() && queue.size === times.length - expected.length && queue.nextAt > now;
    }),
  );
  t.end();
});

test('a fork of a queue takes nothing from its origin, and a merge hands over what was added', (t) => {
  const queue = new TimerQueue();
  queue.push(timer(1, 'a'));
  const fork = queue.fork();
  fork.push(timer(2, 'b'));
  t.equal(fork.takeDue(5)?.subject, 'a');
  t.equal(queue.size, 1);
  queue.applyFork(fork);
  t.equal(queue.takeDue(5)?.subject, 'a');
  t.equal(queue.takeDue(5)?.subject, 'b');
  t.equal(queue.takeDue(5), null);
  t.end();
});
