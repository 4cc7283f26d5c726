import { test, type Test } from 'tap';
import { NodeCondition } from '../../../src/agent/api-server/node-condition.js';
import { silentLog } from '../../../src/host/log.js';
import { WorkQueue } from '../../../src/kube/work-queue.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { apiServer, clientOf, NODE } from '../../kube/setting.js';

const TYPE = 'GPUMemoryLimitsByDriver';
const READY = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };

interface Status {
  readonly conditions?: readonly { readonly type: string; readonly lastTransitionTime?: string }[];
}

function opened(t: Test, server: ApiServer) {
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
  const clock = new ManualClock();
  const condition = new NodeCondition({ client: clientOf(t, server.url), queue, nodeName: NODE, type: TYPE, clock });
  t.teardown(() => queue.stop());
  const written = async (): Promise<Status['conditions']> => {
    await eventually(() => queue.counts.waiting === 0);
    return (server.read('nodes', '', NODE)?.status as Status | undefined)?.conditions;
  };
  const patches = (): number => server.requests.filter(({ verb }) => verb === 'patch').length;
  return { condition, clock, written, patches };
}

test('the condition is written beside those of others, keeps its time, and goes', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', { metadata: { name: NODE }, status: { conditions: [READY] } });
  const { condition, clock, written, patches } = opened(t, server);
  condition.set({ status: 'True', reason: 'DriverEnforces', message: 'a' });
  const first = (await written())?.find(({ type }) => type === TYPE);
  t.match(first, { status: 'True', reason: 'DriverEnforces', message: 'a' });
  clock.advance(60_000);
  condition.set({ status: 'True', reason: 'DriverEnforces', message: 'b' });
  const second = (await written())?.find(({ type }) => type === TYPE);
  t.match(second, { message: 'b', lastTransitionTime: first?.lastTransitionTime });
  condition.set({ status: 'True', reason: 'DriverEnforces', message: 'b' });
  await written();
  t.equal(patches(), 2, 'what is there already is not written');
  condition.set({ status: 'False', reason: 'LibraryEnforces', message: 'c' });
  const third = (await written())?.find(({ type }) => type === TYPE);
  t.not(third?.lastTransitionTime, first?.lastTransitionTime);
  condition.set(null);
  t.same(await written(), [READY]);
});

test('a node that has no condition and needs none is not written', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', { metadata: { name: NODE }, status: { conditions: [READY] } });
  const { condition, written, patches } = opened(t, server);
  condition.set(null);
  t.same(await written(), [READY]);
  t.equal(patches(), 0);
});
