import { test } from 'tap';
import { TokenAccess } from '../../src/http/token-access.js';
import { allocation, gpu, node, served, slice, viewOf } from '../agent/display/fixture.js';
import { ManualClock } from '../manual-clock.js';
import { DESKTOP, noBrowser, openBrowser } from '../page/browser.js';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole } from './fixture.js';

test(
  'a node and its slices lead to the page of the node, behind the proxy of the API server',
  { skip: noBrowser },
  async (t) => {
    const one = gpu(0);
    const owners = [{ podUid: 'default-bert', namespace: 'default', pod: 'bert', container: 'main' }];
    const agent = await served(
      t,
      viewOf(() => node({ gpus: [one], allocations: [allocation('bert', [slice(one)], { owners })] })),
      {
        access: new TokenAccess(
          async (token) => ({ kind: token === 'operator' ? 'unknown' : 'allowed' }),
          new ManualClock(),
        ),
      },
    );
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [0] }));
      server.seed('serviceaccounts', { metadata: { name: 'gpu-manager-reader', namespace: 'kube-system' } });
      const spec = { nodeName: 'gpu-node-1', containers: [{ name: 'gpu-manager', args: ['--token-review'] }] };
      server.seed('pods', { ...agentObject('gpu-node-1'), spec });
      server.reach = () => agent.server.port;
    });
    const browser = await openBrowser();
    t.teardown(() => browser.close());
    const context = await browser.newContext(DESKTOP);
    const sent: Record<string, string>[] = [];
    context.on('request', (request) => {
      if (request.url().includes('/proxy/api/')) sent.push(request.headers());
    });
    const page = await context.newPage();
    await page.goto(`${console.base}/#/node/gpu-node-1`);
    await page.locator('#token-text').fill('operator');
    await page.locator('#token-text').press('Enter');
    const opened = async (action: () => Promise<void>) => {
      const next = context.waitForEvent('page');
      await action();
      return next;
    };

    const nodePage = await opened(() => page.locator('.own-page a').click());
    t.equal(nodePage.url(), `${console.server.url}/api/v1/namespaces/kube-system/pods/agent-gpu-node-1:5678/proxy/`);
    await nodePage.locator('#token-text').fill('of-agents');
    await nodePage.locator('#token-text').press('Enter');
    await nodePage.locator('a.slice', { hasText: 'bert' }).waitFor();
    t.ok(sent.length > 0);
    t.notOk(
      sent.some(({ authorization }) => authorization !== undefined),
      'kubectl proxy would send it to the API server',
    );
    t.ok(sent.some((headers) => headers['x-gpu-manager-token'] === 'of-agents'));
    t.notOk(
      sent.some((headers) => headers['x-gpu-manager-token'] === 'operator'),
      'an agent gets no token of the cluster',
    );

    await page.evaluate(`location.hash = '#/pod/default-bert'`);
    const ofSlice = await opened(() => page.locator('.plain-list a.own-page').click());
    t.match(ofSlice.url(), /\/pods\/agent-gpu-node-1:5678\/proxy\/#\/container\/[0-9a-f]{16}$/u);
    await ofSlice.locator('#token-text').fill('of-agents');
    await ofSlice.locator('#token-text').press('Enter');
    await ofSlice.locator('.container h2', { hasText: 'bert' }).waitFor();
  },
);
