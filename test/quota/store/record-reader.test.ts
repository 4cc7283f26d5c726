import t from 'tap';
import type { StoredRecord } from '../../../src/quota/core/records/record.js';
import { RecordReader } from '../../../src/quota/store/journal/record-reader.js';
import { generator } from '../../generator.js';

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return 'invalid';
  }
}

function read(reader: RecordReader, lines: readonly string[]): readonly unknown[] {
  const found: StoredRecord[] = [];
  try {
    reader.readAll(Buffer.from(lines.join('\n')), 0, (record) => found.push(record));
  } catch {
    return [...found, 'invalid'];
  }
  return found;
}

t.test('the reader gives what a JSON parser gives, for whole and for damaged lines', async (t) => {
  const next = generator(26);
  const below = (limit: number): number => Math.floor(next() * limit);
  const shape = { signature: 'cpu>#0', needs: [{ resource: 'cpu', side: 'request' }], types: {}, unspecified: [] };
  const names = ['', 'a', 'team-1', 'Zürich', 'with "quotes"', 'back\\slash', 'line\nbreak', ']],[[', '日本'];
  const some = <T>(values: readonly T[]): T => values[below(values.length)] as T;
  const line = (): string =>
    JSON.stringify({
      kind: some(['workload', 'workload', 'workload', 'pod']),
      key: `Deployment.apps/${some(names)}/service-${below(1000)}`,
      group: some(names),
      value:
        below(10) === 0
          ? null
          : {
              uid: some(names),
              podSets: Array.from({ length: below(3) }, () => [
                some(names),
                below(5),
                some([0, 1, shape]),
                some([[], [500, 1], ['9223372036854775807', 3]]),
              ]),
              countKey: some(names),
              heldReplicas: some([0, 7, 1.5, -1, 1e21, 123456789012345]),
              ...(below(2) === 0 ? {} : { version: some([1, 0, 20, 9007199254740991]) }),
            },
    });
  const reader = new RecordReader();
  const lines = Array.from({ length: 3000 }, line);
  t.strictSame(
    read(reader, lines),
    lines.map((each) => JSON.parse(each) as unknown),
  );
  for (const whole of lines) {
    const at = below(whole.length);
    const other = some(['', '"', '0', '[', ']', '}', ',', ' ', '\\', '\t', 'x', '00']);
    const damaged = `${whole.slice(0, at)}${other}${whole.slice(at + below(2))}`;
    if (damaged !== '') t.strictSame(read(reader, [damaged]), [parsed(damaged)], damaged);
  }
});

t.test('equal texts give the same pod sets, and numbers keep every digit', async (t) => {
  const line = (name: string, amount: string): string =>
    `{"kind":"workload","key":"Job//${name}","group":"g","value":{"uid":"","podSets":[["",2,0,[${amount}]]],"countKey":"","heldReplicas":0}}`;
  const found: StoredRecord[] = [];
  const text = [line('a', '500'), line('b', '500'), line('c', '"9007199254740993"')].join('\n');
  const count = new RecordReader().readAll(Buffer.from(`{}\n${text}`), 3, (record) => found.push(record));
  t.equal(count, 3);
  const lists = found.map((record) => (record.kind === 'workload' ? record.value?.podSets : undefined));
  t.equal(lists[0], lists[1]);
  t.strictSame(lists[2], [['', 2, 0, ['9007199254740993']]]);
});
