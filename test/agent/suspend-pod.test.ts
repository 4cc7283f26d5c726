import { test } from 'tap';
import { SUSPEND_IDLE_KEY, SUSPEND_KEY } from '../../src/gpu/annotations.js';
import { eventually } from '../harness/eventually.js';
import { skip, suspendingNode } from './suspending-node.js';

test('a pod suspends and resumes itself by its annotation, each value once', { skip }, async (t) => {
  const { node, pod, listed, start, seen, usedMib, remembers, notes } = await suspendingNode(t, true);
  const tenant = await start(['64']);
  await seen(1);
  const ask = (value: string | null) => node.kubelet.annotate(pod.uid, value === null ? {} : { [SUSPEND_KEY]: value });
  const reasons = () => notes.map(({ reason }) => reason);
  const steps = async (step: string, why: string) => eventually(async () => (await listed())?.step === step, why);

  ask('suspended@1');
  await steps('suspended', 'it is suspended');
  t.match(await listed(), { by: 'pod', held: false });
  t.ok(await remembers(tenant), 'a call resumes it');
  await steps('running', 'it runs');
  await node.stopAgent();
  await node.startAgent();
  t.ok(await remembers(tenant));
  await seen(1);
  t.equal((await listed())?.step, 'running', 'the next agent does not do it again');

  ask('held');
  await steps('suspended', 'it is held');
  t.match(await listed(), { by: 'pod', held: true });
  ask('running@2');
  await steps('running', 'it is resumed');
  ask('main=held');
  await steps('suspended', 'it is held again');
  ask(null);
  await steps('running', 'without the annotation nothing holds it');
  t.ok(usedMib() > 64);
  const before = reasons().length;
  ask('asleep');
  await eventually(() => reasons().length > before, 'the value is refused');
  t.match(notes.at(-1), { reason: 'GPUSuspendRefused', message: /"asleep" is not suspended, held or running/ });
});

test('an idle container is suspended after the time that its pod says, and comes back', { skip }, async (t) => {
  const { node, pod, listed, start, seen, remembers, notes } = await suspendingNode(t, true);
  const tenant = await start(['64']);
  await seen(1);
  node.kubelet.annotate(pod.uid, { [SUSPEND_IDLE_KEY]: '1s' });
  await eventually(async () => (await listed())?.step === 'suspended', 'it is suspended');
  t.match(await listed(), { by: 'idle', held: false });
  t.match(
    notes.map(({ reason }) => reason),
    ['GPUSuspended'],
  );
  t.ok(await remembers(tenant));
  node.kubelet.annotate(pod.uid, { [SUSPEND_IDLE_KEY]: 'never' });
  await eventually(async () => (await listed())?.step === 'running', 'it runs');
});
