import { readFile } from 'node:fs/promises';
import { test } from 'tap';
import type { Page } from 'playwright-core';
import { systemClock } from '../../src/host/clock.js';
import { createEngine } from '../../src/quota/index.js';
import { KubeStore } from '../../src/quota-controller/store/kube-store.js';
import { node, served, viewOf } from '../agent/display/fixture.js';
import { violationsOn } from '../page/axe.js';
import { DESKTOP, keep, noBrowser, PHONE } from '../page/browser.js';
import { consolePages, openConsole, SCHEMES } from './console-pages.js';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole } from './fixture.js';
import { fullCluster, GPU, LONG_GROUP } from './full-cluster.js';
import { clientTo } from '../quota-controller/setting.js';
import { claimingPod, claimObject, eventObject, groupObject, serveClaims } from './quota-objects.js';

const skip = noBrowser;
async function show(page: Page, view: string): Promise<void> {
  await page.evaluate(`location.hash = '#/${view}'`);
  await page.locator(`body[data-view="${view}"]`).waitFor();
}

test('the console shows quota, fair shares, events and claims', { skip }, async (t) => {
  for (const [name, options] of [
    ['desktop', DESKTOP],
    ['phone', PHONE],
  ] as const)
    t.test(`every view fits the window: ${name}`, async (t) => {
      const console = await runningConsole(t, fullCluster);
      const { page, complaints } = await openConsole(console, 'operator', options);
      await page.locator('.tabs a[href="#/claims"]').waitFor();
      await page.locator('.tabs a[href="#/quota"]', { hasText: '4' }).waitFor();
      for (const scheme of SCHEMES) {
        await page.emulateMedia({ colorScheme: scheme });
        for (const view of ['quota', 'shares', 'events', 'claims', 'usage']) {
          await show(page, view);
          t.ok(
            await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
            `${view} does not scroll sideways`,
          );
          // In one turn of the page: an update of the cluster draws all rows anew.
          const widths: number[] = await page.evaluate(
            `[...document.querySelectorAll('.limit-key')].map((key) => key.getBoundingClientRect().width)`,
          );
          t.ok(
            widths.every((width) => width > 90),
            `the keys of ${view} have room: ${widths.join(', ')}`,
          );
          await keep(page, `console-${name}-${scheme}-${view}`);
        }
      }
      t.same(complaints(), []);
    });

  t.test('quota: limits, use and hours, as a tree that opens by keyboard', async (t) => {
    const console = await runningConsole(t, fullCluster);
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/quota');
    await page.locator('.quota .head', { hasText: 'company' }).waitFor();
    t.same(await page.locator('.quota .branch').allTextContents(), ['company', 'research', 'vision', LONG_GROUP]);
    t.match(
      await page.locator('.quota tr:not(.head)', { hasText: GPU }).first().textContent(),
      /^requests\.nvidia\.com\/gpu861 75 %$/u,
    );
    t.match(
      await page.locator('.quota .hours').first().textContent(),
      /^hours of requests\.nvidia\.com\/gpu 98\.02 left, 6 per hour now700601\.9820 86 %$/u,
    );
    t.match(await page.locator('.remark').allTextContents(), [/^CashLow: /, `OverQuota: ${GPU}`]);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('h2', { hasText: 'Quota below research' }).waitFor();
    t.same(await page.locator('.quota .branch').allTextContents(), ['research', 'vision', LONG_GROUP]);
    await page.keyboard.press('Escape');
    await page.locator('a.node').waitFor();
    await show(page, 'quota');
    await page.locator('#filter').fill('vision');
    await page.locator('.quota .branch').nth(1).waitFor();
    t.same(await page.locator('.quota .branch').allTextContents(), ['vision', LONG_GROUP]);
    await page.locator('#filter').fill('');
    console.server.seed('bizgroupresourcequotas', groupObject('new', { parent: 'company' }));
    await page.locator('.quota .branch', { hasText: 'new' }).waitFor();
    const status = { used: { pods: '5' }, conditions: [] };
    console.server.seed('bizgroupresourcequotas', groupObject('full', { hard: { pods: '5' }, status }));
    const bar = page.locator('.quota tr', { hasText: /^pods/ }).locator('.fill');
    await bar.waitFor({ state: 'attached' });
    t.equal(await bar.getAttribute('class'), 'fill', 'a full bar is not red while nothing is refused');
    const message = 'Error creating: admission webhook denied the request: exceeded quota: full, requested: pods=1';
    console.server.seed(
      'events',
      eventObject('full', 'FailedCreate', message, { pod: 'serve', component: 'replicaset-controller' }),
    );
    await page.locator('.quota .fill.full').nth(1).waitFor({ state: 'attached' });
    t.equal(await bar.getAttribute('class'), 'fill full');
    t.same(complaints(), []);
  });

  t.test('fair shares: what the arbitrator decided, for whom, and from when', async (t) => {
    const console = await runningConsole(t, fullCluster);
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/shares');
    await page.locator('.plans li').first().waitFor();
    t.match(await page.locator('.plans li').allTextContents(), [
      /^first uses more than its fair share of nvidia\.com\/gpu while others wait: its pods may be evicted from 2026-12-01 /,
      /^Pods of first were evicted for second, \d+ days ago\.$/,
    ]);
    t.same(await page.locator('.quota .branch').allTextContents(), ['app', 'first']);
    t.equal(await page.locator('.quota .overused').textContent(), 'nvidia.com/gpu1–12–');
    t.same(complaints(), []);
  });

  t.test('events: those of this project and refused pods, equal ones folded, by the filter', async (t) => {
    const console = await runningConsole(t, fullCluster);
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/events');
    await page.locator('.events .warning', { hasText: 'default/bert: main: 40 is more than 30' }).waitFor();
    await page.locator('.events .warning', { hasText: 'default/refused: no GPU has 30 cores free' }).waitFor();
    t.match(await page.locator('.events .fold').textContent(), /GPUAssigned4 times since /);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('.events details[open] li', { hasText: 'bert-3' }).waitFor();
    console.server.seed(
      'events',
      eventObject('c', 'GPUAudit', 'main: launches past the library', {
        ...{ pod: 'bert', type: 'Warning', at: '2026-10-01T10:06:00Z' },
      }),
    );
    await page.locator('.events .warning', { hasText: 'launches past the library' }).waitFor();
    t.equal(await page.locator('.events details[open]').count(), 1, 'what was opened stays open');
    await page.keyboard.press('/');
    await page.keyboard.type('audit');
    await page.locator('.events li').nth(1).waitFor({ state: 'detached' });
    t.same(complaints(), []);
  });

  t.test('claims: devices, pods and why one waits, also beside the slices of the node', async (t) => {
    const console = await runningConsole(t, fullCluster);
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/claims');
    await page.locator('a.claim').nth(1).waitFor();
    t.match(await page.locator('a.claim').allTextContents(), [
      /^bigdefault100 cores, 80 GiBwaiting.*pod train: cannot allocate all claims$/,
      /^shareddefault · notebook30 cores, 4 GiBgpu-node-1 · GPU 1reserved/,
    ]);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('.plain-list li', { hasText: 'gpu: 30 cores, 4 GiB of GPU 1 on gpu-node-1' }).waitFor();
    await page.locator('.plain-list a', { hasText: 'notebook' }).click();
    await page.locator('.plain-list li', { hasText: 'claim shared: 30 cores, 4 GiB on GPU 1' }).waitFor();
    await page.locator('.facts a', { hasText: 'gpu-node-1' }).click();
    await page.locator('.wide-bars .track').nth(1).waitFor();
    t.match(
      await page.locator('.wide-bars .track').nth(1).getAttribute('title'),
      /default\/notebook: 30 cores, claim shared/,
    );
    t.same(complaints(), []);
  });

  t.test('usage: GPU-hours by what the reader chooses, in the address, and as a file', async (t) => {
    const containers = ['research', 'vision'].map((namespace, at) => ({
      ...{ namespace, pod: 'train', podUid: namespace, container: 'main', gpus: [0] },
      ...{ allocatedSeconds: 36_000 / (at + 1), usedSeconds: 9_000, throttledSeconds: 0 },
    }));
    const use = { hours: async (fromMs: number) => ({ fromMs, containers }), minutes: () => [] };
    const agent = await served(
      t,
      viewOf(() => node({ gpus: [] })),
      { use },
    );
    const console = await runningConsole(t, (server) => {
      fullCluster(server);
      server.seed('pods', agentObject('gpu-node-1'));
      server.reach = () => agent.server.port;
    });
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/usage');
    await page.locator('.usage tbody tr').nth(1).waitFor();
    t.match(await page.locator('.usage tbody tr').allTextContents(), [/^research102\.51 25 %$/, /^vision52\.51 50 %$/]);
    await page.locator('.ranges a', { hasText: '7 days' }).click();
    await page.locator('.ranges a', { hasText: 'Pod' }).click();
    await page.locator('.usage tbody tr', { hasText: 'vision/train' }).waitFor();
    t.match(page.url(), /#\/usage\/pod\/7d$/);
    await page.locator('#filter').fill('research');
    t.equal(await page.locator('.usage tbody tr').count(), 1);
    await page.locator('#filter').fill('');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.locator('button', { hasText: 'CSV' }).click(),
    ]);
    t.equal(file.suggestedFilename(), 'usage-pod-7d.csv');
    t.match(await readFile(await file.path(), 'utf8'), /^POD,ALLOCATED.*\r\nresearch\/train,10,2\.5,25 %,1,/);
    t.same(complaints(), []);
  });

  t.test('a workload of a group is stopped and resumed in a dialog that says what it does', async (t) => {
    const reviews = { tokens: new Map<string, string>(), allows: () => true };
    const console = await runningConsole(
      t,
      (server) => {
        fullCluster(server);
        server.seed('deployments', { metadata: { name: 'serve', namespace: 'default' }, spec: { replicas: 2 } });
      },
      { tokenReview: false },
      { reviews },
    );
    const client = clientTo(console.server.url);
    t.teardown(() => client.close());
    const store = new KubeStore({ api: client, clock: systemClock });
    const engine = await createEngine({ store, clock: () => Date.now() });
    t.teardown(() => engine.close());
    await engine.createGroup({ name: 'team', hard: { gpus: 8 } });
    const admit = (count: number) =>
      engine.admit({
        workload: { kind: 'Deployment.apps', namespace: 'default', name: 'serve' },
        group: 'team',
        podSets: [{ count, requests: { 'nvidia.com/gpu': 1 } }],
      });
    await admit(2);
    console.server.seed('bizgroupresourcequotas', groupObject('team', { hard: { gpus: '8' } }));
    const { page, complaints } = await consolePages.open(console.base, '/#/quota/team', DESKTOP);
    await page.locator('button.switch', { hasText: 'Stop…' }).click();
    await page.locator('#switch h2', { hasText: 'Stop Deployment default/serve?' }).waitFor();
    t.match(
      await page.locator('#switch').textContent(),
      /from 2 replicas to 0; .*Its pods end: .*is lost.*StopCancel$/,
    );
    t.same(await violationsOn(page), []);
    await page.keyboard.press('Enter');
    await page.locator('#switch', { hasText: 'It stops: its pods end now.' }).waitFor();
    t.match(console.server.read('deployments', 'default', 'serve'), { spec: { replicas: 0 } });
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    await page.locator('button.switch').click();
    await page.locator('#switch h2', { hasText: 'Resume Deployment default/serve?' }).waitFor();
    await page.locator('#switch .act').click();
    await page.locator('#switch', { hasText: 'It runs again' }).waitFor();
    t.match(console.server.read('deployments', 'default', 'serve'), { spec: { replicas: 2 } });
    await page.locator('#switch button', { hasText: 'Close' }).click();
    t.same(complaints, []);
  });

  t.test('pods that share a claim share its part of the bar of a GPU', async (t) => {
    const console = await runningConsole(t, (server) => {
      serveClaims(server);
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      const claim = { on: { node: 'gpu-node-1', gpu: 0 }, cores: 60, pods: ['one', 'two'] };
      server.seed('resourceclaims', claimObject('shared', claim));
      for (const name of claim.pods)
        server.seed('pods', claimingPod(podObject(name, { node: 'gpu-node-1' }), 'shared'));
    });
    const { page, complaints } = await openConsole(console, 'operator');
    await page.locator('.bars .segment').nth(1).waitFor();
    const widths = await page.evaluate(
      `[...document.querySelectorAll('.bars .segment')].map(({ style }) => style.width)`,
    );
    t.same(widths, ['30%', '30%']);
    t.same(complaints(), []);
  });

  t.test('what still fits: of the cluster beside the waiting pods, of a group below its quota', async (t) => {
    const console = await runningConsole(t, (server) => {
      fullCluster(server);
      server.seed('nodes', nodeObject('gpu-node-2', { gpus: 1 }));
      server.seed('pods', podObject('next', { cores: 100, blocks: 0 }));
    });
    const { page, complaints } = await openConsole(console, 'operator', DESKTOP, '/#/waiting');
    const cells = page.locator('.shapes tr', { hasText: 'vcuda-core=100' }).locator('td');
    await cells.first().waitFor();
    t.match(await cells.allTextContents(), ['1', '2', /gpu-node-[12] \(1\), /, /tencent\.com\/vcuda-core on 2 nodes/]);
    await show(page, 'quota');
    t.equal(await page.locator('.shapes').count(), 0);
    await page.locator('.quota .branch', { hasText: 'research' }).click();
    await page.locator('.shapes p', { hasText: 'No workload requests anything.' }).waitFor();
    t.same(complaints(), []);
  });

  t.test('a view that a user or a cluster does not have is hidden, and the overview says why', async (t) => {
    const console = await runningConsole(t, (server) => server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 })));
    const { page, complaints } = await openConsole(console, 'technician', DESKTOP, '/');
    await page.locator('.hidden-views li', { hasText: 'Quota: The API server does not serve' }).waitFor();
    await page.locator('.hidden-views li', { hasText: 'Events: You may not list events' }).waitFor();
    t.same(await page.locator('.tabs a').count(), 1, 'nodes alone');
    await page.evaluate("location.hash = '#/quota'");
    await page.locator('.notice', { hasText: 'the quota of gpu-manager is not installed' }).waitFor();
    t.same(complaints(), []);
  });
});
