import { test } from 'tap';
import { skip, suspendingNode } from './suspending-node.js';

test('a frozen process holds nobody up: the others run again, and it does when it is thawed', { skip }, async (t) => {
  const { suspend, start, seen, usedMib, remembers } = await suspendingNode(t, true);
  const both = [await start(['64']), await start(['64'])] as const;
  await seen(2);
  const before = usedMib();
  process.kill(both[1].pid, 'SIGSTOP');
  t.match(await suspend(), `process ${both[1].pid} did not answer the lock: it may be frozen; its processes run`);
  t.equal(usedMib(), before);
  t.ok(await remembers(both[0]));
  process.kill(both[1].pid, 'SIGCONT');
  t.ok(await remembers(both[1]));
  t.match(await suspend(), /^\d+ MiB$/);
});
