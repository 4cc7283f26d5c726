import { test } from 'tap';
import type { DeviceLimit } from '../../../../src/abi/limits-file.js';
import { oversubscribe } from '../../../../src/agent/slices/limits/live-limits.js';
import { LIMIT_ANNOTATIONS, readContainerAnnotation } from '../../../../src/kube/limit-annotations.js';

const MIB = 2 ** 20;
const KEY = 'tencent.com/vcuda-memory-oversubscribe';
const part: DeviceLimit = { memoryBytes: 1024 * MIB, share: 30, softLimit: null };

const asking = (text: string): ReadonlyMap<string, string> => new Map([[KEY, text]]);
const held = (text: string, factor: number, devices: readonly DeviceLimit[] = [part]) =>
  oversubscribe(devices, asking(text), 'main', factor);

for (const [text, memoryClass] of [
  ['low', 'low'],
  ['normal', 'normal'],
  ['high', 'high'],
  ['main=low,side=high', 'low'],
  ['side=low', undefined],
  ['Low', null],
  ['1.5', null],
  ['', null],
] as const) {
  test(`${JSON.stringify(text)} is memory class ${memoryClass ?? 'of no name'}`, (t) => {
    const read = readContainerAnnotation(LIMIT_ANNOTATIONS.memoryClass, (key) => asking(text).get(key), 'main');
    t.equal('problem' in read ? null : read.value, memoryClass);
    t.end();
  });
}

test('class low may exceed its memory limit as far as the node allows it, and normal and high never may', (t) => {
  t.same(held('low', 1.5), { devices: [{ ...part, hostBackedBytes: 512 * MIB }], notes: [] });
  t.same(held('low', 2), { devices: [{ ...part, hostBackedBytes: 1024 * MIB }], notes: [] });
  for (const text of ['normal', 'high']) t.same(held(text, 2), { devices: [part], notes: [] });
  t.same(oversubscribe([part], new Map(), 'main', 2), { devices: [part], notes: [] });
  t.end();
});

for (const [name, result, note] of [
  [
    'a node that does not oversubscribe',
    held('low', 1),
    'this node does not oversubscribe memory (--memory-oversubscription)',
  ],
  ['an unknown class', held('lowest', 2), '"lowest" is not high, normal or low'],
  [
    'several GPUs',
    held('low', 2, [part, part]),
    'only containers with one GPU can hold host-backed memory, this one has 2',
  ],
  [
    'a container of high priority',
    held('low', 2, [{ ...part, priority: 'high' }]),
    'a container of high priority never holds memory on the host',
  ],
  [
    'a container without a memory limit',
    held('low', 2, [{ ...part, memoryBytes: null }]),
    'the container has no memory limit',
  ],
] as const) {
  test(`${name} is refused with the reason, and the limits stay`, (t) => {
    t.same(result.notes, [`${KEY}: ${note}`]);
    t.notOk(result.devices.some(({ hostBackedBytes }) => hostBackedBytes !== undefined));
    t.end();
  });
}
