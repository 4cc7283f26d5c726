import { test } from 'tap';
import { Listeners } from '../../src/host/listeners.js';

test('listeners get each event in the order in which they were added, until they are removed', async (t) => {
  const seen: string[] = [];
  const listeners = new Listeners<string>();
  const remove = listeners.add((event) => seen.push(`first ${event}`));
  listeners.add((event) => seen.push(`second ${event}`));
  listeners.emit('one');
  remove();
  remove();
  listeners.emit('two');
  t.same(seen, ['first one', 'second one', 'second two']);
  t.equal(listeners.size, 1);
});

test('a listener that an event adds or removes counts from the next event on, or at once', async (t) => {
  const seen: string[] = [];
  const listeners = new Listeners();
  listeners.add(() => {
    seen.push('adds and removes');
    listeners.add(() => seen.push('was added'));
    removeNext();
  });
  const removeNext = listeners.add(() => seen.push('was removed'));
  listeners.emit();
  t.same(seen, ['adds and removes']);
  listeners.clear();
  listeners.emit();
  t.same(seen, ['adds and removes'], 'cleared listeners get nothing');
});

test('listeners that take time are awaited one after another by whoever iterates', async (t) => {
  const listeners = new Listeners<number, Promise<string>>();
  listeners.add(async (event) => `first ${event}`);
  listeners.add(async (event) => `second ${event}`);
  const answers: string[] = [];
  for (const listener of listeners) answers.push(await listener(1));
  t.same(answers, ['first 1', 'second 1']);
});
