/**
 * The console behind `kubectl proxy`, where its page has the origin of the API server and the rights of its reader:
 * whatever texts users and nodes put into the cluster, the page asks for nothing but the console's own documents.
 */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type Test } from 'tap';
import { allocation, gpu, node, served, slice, viewOf } from '../agent/display/fixture.js';
import { DESKTOP, noBrowser } from '../page/browser.js';
import { openSharedPage } from '../page/shared-browser.js';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole } from './fixture.js';
import { eventObject } from './quota-objects.js';

const CONSOLE = '/api/v1/namespaces/kube-system/services/gpu-console:80/proxy';
const SECRETS = '/api/v1/secrets';
/** Texts that run or load something where a page shows them as markup, or makes them links. */
const HOSTILE = [
  `<img src="${SECRETS}" onerror="fetch('${SECRETS}')">`,
  `"><script>fetch('${SECRETS}')</script>`,
  `javascript:fetch('${SECRETS}')`,
].join(' ');

/** `kubectl proxy`: the console below its path, and the API server at all others. Returns its origin. */
async function kubectlProxy(t: Test, base: string, asked: string[]): Promise<string> {
  const proxy = createServer((incoming, response) => {
    const { url = '', method, headers } = incoming;
    if (!url.startsWith(`${CONSOLE}/`)) {
      asked.push(url);
      response.end('{"items":[{"data":"secret"}]}');
      return;
    }
    const host = new URL(base).host;
    const onward = request(
      `${base}${url.slice(CONSOLE.length)}`,
      { method, headers: { ...headers, host } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('behind kubectl proxy the page of the console asks the API server for nothing', { skip: noBrowser }, async (t) => {
  const one = { ...gpu(0), name: HOSTILE };
  const owners = [{ podUid: 'default-bert', namespace: 'default', pod: 'bert', container: HOSTILE }];
  const agent = await served(
    t,
    viewOf(() => node({ gpus: [one], allocations: [allocation('bert', [slice(one)], { owners })] })),
  );
  const { base } = await runningConsole(
    t,
    (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1, model: HOSTILE }));
      server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [0], labels: { team: HOSTILE } }));
      server.seed('pods', podObject('waits', { unscheduled: HOSTILE, workload: HOSTILE }));
      server.seed('events', eventObject('a', HOSTILE, HOSTILE, { pod: 'bert' }));
      server.seed('serviceaccounts', { metadata: { name: 'gpu-manager-reader', namespace: 'kube-system' } });
      server.seed('pods', agentObject('gpu-node-1'));
      server.reach = () => agent.server.port;
    },
    { tokenReview: false },
  );
  const asked: string[] = [];
  const origin = await kubectlProxy(t, base, asked);
  const { page, complaints } = await openSharedPage(`${origin}${CONSOLE}`, '/#/nodes', DESKTOP);
  for (const [hash, shown] of [
    ['#/node/gpu-node-1', 'Its own page'],
    ['#/pod/default-bert', 'bert'],
    ['#/pod/default-waits', 'onerror'],
    ['#/pods', 'waits'],
    ['#/events', 'onerror'],
  ] as const) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator('body', { hasText: shown }).waitFor();
    t.equal(await page.locator(`[href*="${SECRETS}"], [src*="${SECRETS}"], script:not([src])`).count(), 0, hash);
  }
  t.same(asked, [], 'requests to the API server');
  t.same(complaints, []);
  t.equal(
    await page.evaluate(`fetch('${SECRETS}').then(({ status }) => status)`),
    200,
    'a script that ran could read it',
  );
  t.same(asked, [SECRETS]);
});
