import fc from 'fast-check';
import { test } from 'tap';
import { BrokenJson } from '../../src/scheduler/json-slices.js';
import { NameTable } from '../../src/scheduler/name-table.js';

function read(table: NameTable, json: string): string | null {
  const text = Buffer.from(`[${json}]`);
  const read = table.readAt(text, 1);
  if (table.end !== text.length - 1) throw new Error(`the value ends at ${table.end} of ${text.length}`);
  return read;
}

test('a text is read as JSON.parse does, the first time and again', (t) => {
  const table = new NameTable();
  const texts = fc.array(fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[ab]{0,3}$/)));
  fc.assert(
    fc.property(texts, (given) => [...given, ...given].every((text) => read(table, JSON.stringify(text)) === text)),
  );
  for (const name of ['node-1', '', 'a'.repeat(253), 'a'.repeat(254)]) {
    t.equal(read(table, JSON.stringify(name)), name);
    t.equal(read(table, JSON.stringify(name)), name);
  }
  t.end();
});

test('an escaped name equals the plain one', (t) => {
  const table = new NameTable();
  t.equal(read(table, '"node-1"'), 'node-1');
  t.equal(read(table, '"\\u006eode-1"'), 'node-1');
  t.equal(read(table, '"n\\u006f"'), 'no');
  t.equal(table.size, 1);
  t.end();
});

test('other values are no texts, and broken ones are refused', (t) => {
  const table = new NameTable();
  for (const json of ['null', '1', '{}', '["a"]']) t.equal(read(table, json), null);
  for (const json of ['"a\n"', '"\\x"', 'node', '"a']) t.throws(() => read(table, json), BrokenJson);
  t.equal(table.size, 0);
  t.end();
});

test('the table is limited: names beyond it are read all the same', (t) => {
  const table = new NameTable();
  let most = 0;
  for (let at = 0; at < 40_000; at++) {
    if (read(table, `"node-${at}"`) !== `node-${at}`) t.fail(`node-${at}`);
    most = Math.max(most, table.size);
  }
  t.equal(most, 32_768);
  t.equal(table.size, 40_000 - 32_768);
  t.equal(read(table, '"node-0"'), 'node-0');
  t.end();
});
