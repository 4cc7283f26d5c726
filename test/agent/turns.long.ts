import './turns.test.js';
import { test } from 'tap';
import { eventually } from '../harness/eventually.js';
import type { TenantProcess } from '../harness/gpu-machine/tenant.js';
import { crowdedNode, holds } from './crowded-node.js';
import { skip } from './suspending-node.js';

test(
  'three pods that each ask for a whole GPU share one, and each remembers what it had there',
  { skip },
  async (t) => {
    const { notebook } = await crowdedNode(t);
    const pods = [await notebook(), await notebook(), await notebook()];
    t.same(await Promise.all(pods.map(({ mark }) => mark())), ['not', 'waits', 'waits']);
    const tenants: TenantProcess[] = [];
    for (const { start } of pods) {
      const tenant = start();
      await holds(tenant);
      tenants.push(tenant);
    }
    t.same(await Promise.all(pods.map(({ mark }) => mark())), ['away', 'away', 'not']);
    for (const tenant of tenants) {
      const before = tenant.output.length;
      tenant.say('go');
      await eventually(() => tenant.output.length > before, 'the program gets its turn');
      t.ok(tenant.output.endsWith('\n5eed\n'));
    }
  },
);
