import { test } from 'tap';
import { TokenAccess } from '../../src/http/token-access.js';
import { allocation, gpu, node, served, slice, viewOf } from '../agent/display/fixture.js';
import { ManualClock } from '../manual-clock.js';
import { DESKTOP, noBrowser } from '../page/browser.js';
import { openSharedPage } from '../page/shared-browser.js';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole } from './fixture.js';

test(
  'the console shows the document of a node, and no link leads to the proxy of the API server',
  { skip: noBrowser },
  async (t) => {
    const one = gpu(0);
    const owners = [{ podUid: 'default-bert', namespace: 'default', pod: 'bert', container: 'main' }];
    const access = new TokenAccess(
      async (token) => ({ kind: token === 'operator' ? 'unknown' : 'allowed' }),
      new ManualClock(),
    );
    const view = viewOf(() => node({ gpus: [one], allocations: [allocation('bert', [slice(one)], { owners })] }));
    const agent = await served(t, view, { access });
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [0] }));
      server.seed('serviceaccounts', { metadata: { name: 'gpu-manager-reader', namespace: 'kube-system' } });
      const { spec, ...rest } = agentObject('gpu-node-1');
      const containers = [{ name: 'gpu-manager', args: ['--token-review'] }];
      server.seed('pods', { ...rest, spec: { ...(spec as object), containers } });
      server.reach = () => agent.server.port;
    });
    const { page } = await openSharedPage(console.base, '/#/node/gpu-node-1', DESKTOP);
    await page.locator('#token-text').fill('operator');
    await page.locator('#token-text').press('Enter');
    await page.locator('.own-page code').waitFor();
    t.equal(
      await page.locator('.own-page').textContent(),
      'Its own page: kubectl --namespace kube-system port-forward pod/agent-gpu-node-1 5678, then open http://localhost:5678/',
    );
    const links = async (): Promise<unknown> =>
      page.evaluate(`[...document.links].map(({ href }) => href).filter((href) => !href.startsWith(location.origin))`);
    t.same(await links(), []);
    await page.evaluate(`location.hash = '#/pod/default-bert'`);
    await page.locator('.container h2', { hasText: 'bert' }).waitFor();
    t.same(await links(), []);
  },
);
