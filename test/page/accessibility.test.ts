import { test } from 'tap';
import type { Page } from 'playwright-core';
import { served, viewOf } from '../agent/display/fixture.js';
import { Scene } from '../agent/display/scene.js';
import { cards } from '../agent/gpus.js';
import { runPod, startedNode } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { agentObject, nodeObject, podObject } from '../console/cluster-objects.js';
import { runningConsole } from '../console/fixture.js';
import { fullCluster } from '../console/full-cluster.js';
import { cases } from '../cases.js';
import { violationsOn } from './axe.js';
import { DESKTOP, noBrowser, openBrowser, openPage } from './browser.js';

/** Colours are looked at, so none may be in the middle of a transition. */
const STILL = { ...DESKTOP, reducedMotion: 'reduce' } as const;

test('axe-core finds nothing on any view, light and dark', { skip: noBrowser }, async (t) => {
  const browser = await openBrowser();
  t.teardown(() => browser.close());

  t.test('a page with two faults, to see that axe-core finds them', async (t) => {
    const page = await browser.newPage();
    await page.setContent(
      '<html lang="en"><title>a</title><main><h1 style="color:#aaa;background:#fff">A heading</h1><img src="b">',
    );
    const found = await violationsOn(page);
    for (const rule of ['color-contrast', 'image-alt'])
      t.ok(
        found.some((violation) => violation.startsWith(`${rule}: `)),
        rule,
      );
    await page.close();
  });

  t.test('the page of a node', async (t) => {
    const scene = new Scene({ gpus: 4, slices: 6, links: () => 4, groups: ['research', 'vision'] });
    scene.gpus[3] = {
      ...scene.gpus[3]!,
      usable: false,
      health: { status: 'reset', reason: 'XID 48: needs a reset', sinceMs: Date.now() },
    };
    const { base, history, journal } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    for (let at = 30; at > 0; at--) history.add(scene.snapshot(Date.now() - at * 2_000));
    journal.note({ level: 'info', kind: 'Started', message: 'research/resnet-train-0/main: 30 cores of GPU 0' });
    const message = 'GPU 3 is reset: XID 48: needs a reset';
    journal.note({ level: 'warning', kind: 'Health', message, gpuUuid: scene.gpus[3].uuid });
    const { page } = await openPage(browser, base, '/', STILL);
    const views: readonly View[] = [
      { hash: '#/', shows: '.history .line[d^="M"]' },
      { hash: `#/container/${scene.allocations[0]?.id}`, shows: '.charts .line[d^="M"]' },
      { hash: '#/container/gone', shows: '.container' },
      { hash: '#/', shows: 'dialog[open]', keys: '?' },
    ];
    t.same(await violationsOfViews(page, views), []);
  });

  t.test('the console', async (t) => {
    const node = await startedNode(t, { gpus: cards(2), knowsPods: true });
    await runPod(node, simplePod(30, 8));
    const { base } = await runningConsole(t, (server) => {
      fullCluster(server);
      server.seed('nodes', nodeObject('gpu-node-2', { gpus: 2, unhealthy: { 1: 'fallen off the bus' } }));
      server.seed('pods', agentObject('gpu-node-2'));
      server.seed('pods', podObject('late', { cores: 800, blocks: 0, unscheduled: '0/2 nodes are available' }));
      server.reach = () => node.agent.httpPort();
    });
    const { page } = await openPage(browser, base, '/', STILL);
    await page.locator('#token-text').waitFor();
    t.same(await violationsOn(page), [], 'the dialog that asks for a token');
    await page.locator('#token-text').fill('operator');
    await page.locator('#token-text').press('Enter');
    await page.locator('.tabs a[href="#/claims"]').waitFor();
    const views: readonly View[] = [
      { hash: '#/', shows: '.bars .segment' },
      { hash: '#/node/gpu-node-1', shows: '.wide-bars .segment' },
      { hash: '#/node/gpu-node-2', shows: '.gpu .slice' },
      { hash: '#/pods', shows: 'a.pod' },
      { hash: '#/pod/default-bert', shows: '.facts' },
      { hash: '#/waiting', shows: 'a.pod' },
      { hash: '#/pod/default-late', shows: '.nodes-explained' },
      { hash: '#/quota', shows: '.quota .head' },
      { hash: '#/shares', shows: '.plans li' },
      { hash: '#/events', shows: '.events .warning' },
      { hash: '#/claims', shows: 'a.claim' },
      { hash: '#/usage', shows: '.usage .note' },
      { hash: '#/', shows: 'dialog[open]', keys: '?' },
    ];
    t.same(await violationsOfViews(page, views), []);
  });
});

/** A view, and what of it is there when it can be looked at. */
interface View {
  readonly hash: string;
  readonly shows: string;
  /** Pressed before. */
  readonly keys?: string;
}

async function violationsOfViews(page: Page, views: readonly View[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { hash, shows, keys } of views) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    if (keys !== undefined) await page.keyboard.press(keys);
    await page.locator(shows).first().waitFor({ state: 'attached' });
    for (const violation of await violationsOn(page)) found.push(`${hash} ${keys ?? ''}: ${violation}`);
    await page.emulateMedia({ colorScheme: 'dark' });
    if (!cases(false, true)) continue;
    // Dark mode changes colours alone; contrast.test.ts computes those of texts.
    for (const violation of await violationsOn(page, ['color-contrast'])) found.push(`${hash}, dark: ${violation}`);
    await page.emulateMedia({ colorScheme: 'light' });
  }
  return found;
}
