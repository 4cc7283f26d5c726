import { test } from 'tap';
import type { ContainerKnowledge } from '../../src/agent/runtimes/index.js';
import { gpuLimits, MIB, openSlices, sliceSpec } from '../agent/slices/node-slices.js';
import { runExample } from './example.js';

const CONTAINER_ID = 'e5a3'.repeat(16);

/** A container with one process. */
class OneProcess implements ContainerKnowledge {
  pid = -1;

  readonly placeOf = async () => ({ containerId: CONTAINER_ID, podUid: null });
  readonly pidsOf = async () => [this.pid];
  readonly sliceOf = () => null;
  readonly nameOf = async () => null;
}

test('the example of a client registers its container, by id or by name, and reads its limits', async (t) => {
  const knowledge = new OneProcess();
  const node = await openSlices(t, { knowledge });
  await node.slices.start(sliceSpec({ devices: [gpuLimits(0, { memoryBytes: 4_096 * MIB, share: 30 })] }));
  for (const how of [
    ['--container-id', CONTAINER_ID],
    ['--container', 'main'],
  ]) {
    const { status, stdout, stderr } = await runExample(
      'vcuda-client.mjs',
      ['--socket', node.socketPath(), ...how],
      (pid) => (knowledge.pid = pid),
    );
    t.equal(stderr, '');
    t.equal(status, 0);
    t.same(JSON.parse(stdout), { podUid: sliceSpec().owner.podUid, memoryMib: 4_096, cores: 30, mostCores: 30 });
  }
});

test('the example of a client passes on why the agent refuses it', async (t) => {
  const node = await openSlices(t, { knowledge: new OneProcess() });
  await node.slices.start(sliceSpec());
  const { status, stderr } = await runExample('vcuda-client.mjs', [
    '--socket',
    node.socketPath(),
    '--container-id',
    CONTAINER_ID,
  ]);
  t.equal(status, 1);
  t.match(stderr, /the processes of the container of process \d+ are not known/u);
});
