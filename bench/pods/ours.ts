import { Agent } from 'node:http';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { KubeClient } from '../../src/kube/client.js';
import { NodePods } from '../../src/agent/api-server/node-pods.js';
import { LAST, measure } from './follower.js';

await measure(async ({ url, node }, seen) => {
  const credentials = {
    server: new URL(url),
    access: async () => ({ agent: new Agent(), headers: {} }),
    distrust: () => undefined,
    close: () => undefined,
  };
  const client = new KubeClient({ credentials, clock: systemClock, userAgent: 'bench' });
  const pods = new NodePods({ client, nodeName: node, clock: systemClock, log: silentLog() });
  let known = 0;
  let updated = 0;
  pods.onChange(({ before, after }) => {
    if (before === null) known += 1;
    if (after?.annotations.get('tencent.com/gpu-assigned') === LAST) updated += 1;
    seen(known, updated);
  });
  pods.start();
});
