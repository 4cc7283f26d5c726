import { test } from 'tap';
import { DESKTOP, keep, noBrowser, PHONE } from '../page/browser.js';
import { openConsole, SCHEMES } from './console-pages.js';
import { agentObject, clusterObjects, nodeObject, podObject } from './cluster-objects.js';
import { cards } from '../agent/gpus.js';
import { runPod, startedNode } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { runningConsole } from './fixture.js';

/** As clouds name them. */
const CLOUD_NODE = 'gke-production-europe-west4-a100-pool-8x-7f3c9a1b-x2kd.c.a-project-of-us.internal';

const skip = noBrowser;
test('the console shows the cluster', { skip }, async (t) => {
  t.test('nodes, GPUs and slices appear, and changes within seconds', async (t) => {
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 4 }));
      server.seed('nodes', nodeObject('gpu-node-2', { gpus: 2, unhealthy: { 1: 'fallen off the bus' } }));
      server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [2] }));
    });
    const { page, complaints } = await openConsole(console, 'operator');
    await page.locator('a.node').nth(1).waitFor();
    await page.locator('.bars .segment').first().waitFor();
    t.same(
      await page.locator('a.node .state').allTextContents(),
      ['1 GPU unhealthy, 1 whole GPU free', '3 whole GPUs free'],
      'nodes that need attention come first',
    );
    t.match(await page.locator('.figures').textContent(), /Unhealthy1 GPU/);
    await page.locator('.figures a', { hasText: '1 GPU' }).click();
    await page.locator('a.node', { hasText: 'gpu-node-1' }).waitFor({ state: 'hidden' });
    t.equal(await page.locator('#filter').inputValue(), 'unhealthy', 'the filter is in the address');
    await page.reload();
    await page.locator('a.node', { hasText: 'gpu-node-1' }).waitFor({ state: 'hidden' });
    await page.locator('#filter').fill('');
    t.match(page.url(), /#\/$/);
    t.match(await page.locator('a.node').last().textContent(), /gpu-node-1.*3 whole GPUs free.*4 GPUs · NVIDIA A100/s);
    t.equal(await page.locator('.bars .track.problem').count(), 1);
    console.server.seed('pods', podObject('late', { node: 'gpu-node-2', gpus: [0], cores: 50 }));
    await page.locator('a.node', { hasText: '50 cores free in parts' }).waitFor();
    console.server.remove('pods', 'default', 'bert');
    await page.locator('a.node', { hasText: '4 whole GPUs free' }).waitFor();
    t.same(complaints(), []);
  });

  t.test('figures of a node whose agent does not run are grey, with their time', async (t) => {
    const console = await runningConsole(t, (server) => {
      for (const name of ['gpu-node-1', 'gpu-node-2', 'gpu-node-3']) {
        server.seed('nodes', nodeObject(name, { gpus: 1 }));
        server.seed('pods', podObject(`pod-${name}`, { node: name, gpus: [0] }));
      }
      server.seed('pods', agentObject('gpu-node-1'));
      server.seed('pods', agentObject('gpu-node-2', '2026-11-22T22:14:03Z'));
    });
    const { page } = await openConsole(console, 'operator', { ...DESKTOP, timezoneId: 'UTC' });
    await page.locator('.bars .segment').nth(2).waitFor();
    const states = await page.locator('a.node .state').allTextContents();
    t.same(states, ['as of 2026-11-22 22:14', 'no agent runs on it', '70 cores free in parts']);
    t.equal(await page.locator('a.node.late').count(), 2);
    t.match(
      await page.evaluate<string>(`getComputedStyle(document.querySelector('a.node.late .bars')).filter`),
      /gray/,
    );
    console.server.seed('pods', agentObject('gpu-node-3'));
    await page.locator('a.node.late').nth(1).waitFor({ state: 'detached' });
    await page.evaluate(`location.hash = '#/node/gpu-node-2'`);
    await page.locator('.agent.as-of', { hasText: 'is not ready' }).waitFor();
    t.match(await page.locator('.agent').textContent(), /Figures as of 2026-11-22 22:14:03 UTC\.$/);
  });

  t.test('a waiting pod says why it waits, in one place', async (t) => {
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      server.seed('nodes', nodeObject('gpu-node-2', { gpus: 1, isCordoned: true }));
      server.seed('pods', podObject('bert', { node: 'gpu-node-1', gpus: [0] }));
      server.seed('pods', podObject('late', { cores: 100, blocks: 0, unscheduled: '0/2 nodes are available' }));
    });
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/waiting');
    await page.locator('a.pod', { hasText: 'late' }).waitFor();
    for (const [name, creationTimestamp] of [
      ['a-minute', '2026-11-22T22:14:00Z'],
      ['z-week', '2026-11-15T22:14:00Z'],
    ] as const) {
      const { metadata, ...rest } = podObject(name, { cores: 100, unscheduled: 'no node' });
      console.server.seed('pods', { ...rest, metadata: { ...metadata, creationTimestamp } });
    }
    console.server.seed(
      'pods',
      podObject('refused', { node: 'gpu-node-1', phase: 'Failed', reason: 'UnexpectedAdmissionError' }),
    );
    await page.locator('a.pod').nth(3).waitFor();
    const names = await page.locator('a.pod .pod-name').allTextContents();
    t.same(names, ['refused', 'z-week', 'a-minute', 'late'], 'what is refused first, then the longest wait');
    await page.locator('a.pod', { hasText: 'late' }).press('Enter');
    await page.locator('.nodes-explained tbody tr').nth(1).waitFor();
    const reasons = await page.locator('.reasons').textContent();
    t.match(reasons, /The scheduler says0\/2 nodes are available/);
    t.match(reasons, /Nearest fitgpu-node-1, when default\/bert ends\. No end of them is known\./);
    t.match(await page.locator('.nodes-explained').textContent(), /gpu-node-1.*whole.*gpu-node-2the node is cordoned/s);
    t.equal(await page.locator('.reasons a', { hasText: 'default/bert' }).getAttribute('href'), '#/pod/default-bert');
    t.same(complaints(), []);
  });

  t.test('pods on one GPU differ in colour or texture, and have the same one in every view', async (t) => {
    const names = Array.from({ length: 12 }, (_, at) => `pod-${at}`);
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      for (const name of names)
        server.seed('pods', podObject(name, { node: 'gpu-node-1', gpus: [0], cores: 5, blocks: 4 }));
    });
    const { page } = await openConsole(console, 'operator');
    await page.locator('.bars .segment').nth(11).waitFor();
    const marksOf = async (selector: string) =>
      await page.evaluate<string[]>(`[...document.querySelectorAll('${selector}')].map((one) => one.className)`);
    const segments = (await marksOf('.bars .segment')).map((mark) => mark.replace('segment ', ''));
    t.equal(new Set(segments).size, 12);
    await page.evaluate(`location.hash = '#/pods'`);
    await page.locator('a.pod').nth(11).waitFor();
    const rows = (await marksOf('a.pod')).map((mark) => mark.replace('pod ', ''));
    t.same(rows.sort(), segments.sort());
  });

  for (const [name, options] of [
    ['desktop', DESKTOP],
    ['phone', PHONE],
  ] as const)
    t.test(`a cluster fits the window: ${name}`, async (t) => {
      const console = await runningConsole(t, (server) => {
        for (const { resource, object } of clusterObjects(40, 2)) server.seed(resource, object);
        server.seed('nodes', nodeObject(CLOUD_NODE, { gpus: 8, unhealthy: { 3: 'fallen off the bus' } }));
        server.seed('pods', podObject('a-pod-of-a-statefulset-with-a-long-name-0', { node: CLOUD_NODE, gpus: [0] }));
        server.seed(
          'pods',
          podObject('llm-train-0', {
            namespace: 'research',
            cores: 800,
            blocks: 2560,
            unscheduled: '0/40 nodes are available: 40 too few whole GPUs free.',
          }),
        );
      });
      const { page, complaints } = await openConsole(console, 'operator', options);
      await page.locator('a.node').nth(40).waitFor();
      await page.locator('.bars .segment').first().waitFor();
      for (const scheme of SCHEMES) {
        await page.emulateMedia({ colorScheme: scheme });
        for (const tab of ['', 'pods', 'waiting']) {
          await page.evaluate(`location.hash = '#/${tab}'`);
          await page.locator(`.tabs a[aria-current][href="#/${tab}"]`).waitFor();
          t.ok(
            await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
            `${tab} does not scroll sideways`,
          );
          await keep(page, `console-${name}-${scheme}-${tab || 'nodes'}`);
        }
        for (const [view, shows] of [
          [`node/${CLOUD_NODE}`, '.wide-bars .track'],
          ['pod/default-a-pod-of-a-statefulset-with-a-long-name-0', '.facts'],
          ['usage/node/24h', '.usage .note'],
        ] as const) {
          await page.evaluate(`location.hash = '#/${view}'`);
          await page.locator(shows).first().waitFor();
          t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${view} does not either`);
          await keep(page, `console-${name}-${scheme}-${view.split('/')[0]}`);
        }
      }
      t.same(complaints(), []);
    });

  t.test('the view of a node shows what its agent knows, and Escape leads back', async (t) => {
    const node = await startedNode(t, { gpus: cards(2), knowsPods: true });
    const wanted = simplePod(30, 8);
    await runPod(node, wanted);
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
      server.seed('pods', agentObject('gpu-node-1'));
      server.reach = () => node.agent.httpPort();
    });
    const { page, complaints } = await openConsole(console, 'operator');
    await page.locator('a.node').press('Enter');
    await page.locator('a.slice', { hasText: wanted.name }).waitFor();
    t.equal(await page.locator('.gpu').count(), 2);

    console.server.reach = () => null;
    await page.locator('.agent.as-of').waitFor();
    t.match(
      await page.locator('.agent').textContent(),
      /does not answer: .*connection refused.* Figures as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+\.$/,
    );
    t.equal(await page.locator('.gpu').count(), 2, 'what was seen last stays');
    t.match(await page.evaluate<string>(`getComputedStyle(document.querySelector('.overview')).filter`), /grayscale/);
    console.server.reach = () => node.agent.httpPort();
    await page.locator('.agent.quiet').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('a.node').waitFor();
    t.same(complaints(), []);
  });
});
