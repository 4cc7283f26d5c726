import { test } from 'tap';
import type { Browser, Page } from 'playwright-core';
import { allocation, gpu, node, served, slice, viewOf } from './fixture.js';
import { DESKTOP, keep, noBrowser, openBrowser, openPage, PHONE } from '../../page/browser.js';
import { Scene } from './scene.js';
import { runPod, startedNode } from '../node.js';
import { simplePod } from '../pods.js';
import { cards } from '../gpus.js';
import { eventually } from '../../harness/eventually.js';

const skip = noBrowser;

/** One browser for all tests of this file. */
let shared: Promise<Browser> | null = null;
function browser(): Promise<Browser> {
  return (shared ??= openBrowser());
}

test('the page shows the node', { skip }, async (t) => {
  t.teardown(async () => (await shared)?.close());

  t.test('a new container appears within two seconds of its start, and disappears when it ends', async (t) => {
    const agent = await startedNode(t, { gpus: cards(2), knowsPods: true, seams: { graceMs: 0 } });
    const { page, complaints } = await openPage(
      await browser(),
      `http://127.0.0.1:${agent.agent.httpPort()}`,
      '/',
      DESKTOP,
    );
    await page.locator('.card').nth(1).waitFor();
    t.equal(await page.locator('a.slice').count(), 0);
    const wanted = simplePod(30, 8);
    await runPod(agent, wanted);
    // The limit is generous for a loaded machine; the feed samples every second.
    await page.locator('a.slice', { hasText: wanted.name }).waitFor({ timeout: 15_000 });
    t.match(
      await page.locator('.events').textContent(),
      new RegExp(`Started.*default/${wanted.name}/main: 30 cores of GPU 0`),
    );
    await page.locator('a.slice').click();
    await page.locator('.container h2', { hasText: wanted.name }).waitFor();
    t.match(await page.locator('.container .facts').first().textContent(), /30 cores, 2 GiB/);
    agent.kubelet.remove(wanted.uid);
    await agent.kubelet.admit(simplePod(10, 4));
    await agent.agent.allocator.reconcile();
    await agent.agent.allocator.reconcile();
    await page.locator('text=This container is gone').waitFor();
    t.same(
      complaints.filter((line) => !line.includes('404')),
      [],
    );
    await page.context().close();
  });

  t.test('a GPU that becomes unhealthy is shown as unhealthy at once, with the reason', async (t) => {
    const scene = new Scene({ gpus: 4 });
    const { base } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const { page, complaints } = await openPage(await browser(), base, '/', DESKTOP);
    await page.locator('.card.healthy').nth(3).waitFor();
    scene.gpus[2] = {
      ...scene.gpus[2]!,
      usable: false,
      health: { status: 'lost', reason: 'fallen off the bus', sinceMs: Date.now() },
    };
    await page.locator('#card-2.lost .reason', { hasText: 'fallen off the bus' }).waitFor();
    t.match(await page.locator('.problems').textContent(), /GPU 2: fallen off the bus/);
    t.equal(await page.locator('.tile.lost.unusable').count(), 1, 'the picture shows the unhealthy GPU, too');
    t.same(complaints, []);
    await page.context().close();
  });

  for (const [name, options] of [
    ['desktop', DESKTOP],
    ['phone', PHONE],
  ] as const) {
    t.test(`16 GPUs with 200 containers do not overlap: ${name}`, async (t) => {
      const scene = new Scene({ gpus: 16, slices: 200, links: () => 18 });
      const { base } = await served(
        t,
        viewOf(() => scene.snapshot()),
      );
      const { page, complaints } = await openPage(await browser(), base, '/', options);
      await page.locator('a.slice').nth(199).waitFor();
      t.same(await overlaps(page, '.tile'), [], 'GPUs of the picture');
      t.same(await overlaps(page, '.card'), [], 'panels of GPUs');
      t.same(await overlaps(page, 'a.slice'), [], 'containers');
      t.same(await overlaps(page, '.slice .use, .slice .name', 'a.slice'), [], 'figures of a container');
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        'the page does not scroll sideways',
      );
      if (options === DESKTOP) await keep(page, 'sixteen-cards');
      t.same(complaints, []);
      await page.context().close();
    });
  }

  t.test('every control is reachable by keyboard', async (t) => {
    const scene = new Scene({ gpus: 2 });
    const { base } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const { page } = await openPage(await browser(), base, '/', DESKTOP);
    await page.locator('a.slice').first().waitFor();
    await page.keyboard.press('Tab');
    t.equal(await focused(page), 'Skip to the GPUs');
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    // Selected by its name: the figures beside it change between the two samples.
    const second = await page.locator('a.slice').nth(1).locator('.pod').textContent();
    t.match(await focused(page), new RegExp(`^${second}`));
    scene.allocations = scene.allocations.filter((_, at) => at !== 0);
    await eventually(async () => (await page.locator('a.slice').count()) === scene.allocations.length);
    t.match(await focused(page), /^bert-serve/, 'the focus stays on its container when the page changes');
    await page.keyboard.press('Enter');
    await page.locator('.container h2', { hasText: 'bert-serve' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.cards').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('notebook');
    t.same(
      await page
        .locator('a.slice:visible .pod')
        .allTextContents()
        .then((names) => names.map((name) => name.replace(/-\w+$/, ''))),
      ['notebook-ann', 'notebook-li'],
    );
    await page.keyboard.press('Escape');
    t.ok((await page.locator('a.slice:visible').count()) > 2);
    await page.keyboard.press('?');
    await page.locator('dialog#keys[open]').waitFor();
    await page.keyboard.press('Escape');
    t.equal(await page.locator('dialog#keys[open]').count(), 0);
    await page.context().close();
  });

  t.test('pod names are shown as text and never interpreted', async (t) => {
    const evil = '"><img src=x onerror="document.title=1"><script>document.title=2</script>\u202e';
    const one = gpu(0, { model: evil });
    const owners = [{ podUid: 'u', namespace: evil, pod: evil, container: evil }];
    const state = node({
      node: 'n',
      gpus: [one],
      notReady: [evil],
      allocations: [
        allocation('evil', [slice(one)], { owners, findings: [{ code: evil, message: evil, serious: true }] }),
      ],
    });
    const { base, journal } = await served(
      t,
      viewOf(() => state),
    );
    journal.note({ level: 'warning', kind: evil, message: evil });
    const { page, complaints } = await openPage(await browser(), base, '/', DESKTOP);
    await page.locator('a.slice').click();
    await page.locator('.container h2').waitFor();
    t.equal(await page.locator('.container h2').textContent(), evil);
    t.equal(await page.title(), 'n – GPUs');
    t.equal(await page.locator('img[src="x"], main script').count(), 0);
    t.same(complaints, []);
    await page.context().close();
  });

  t.test(
    'the page reports that the agent is unreachable, and continues by itself when the agent is back',
    async (t) => {
      const state = node({ gpus: [gpu(0)] });
      const first = await served(
        t,
        viewOf(() => state),
      );
      const { port } = first.server;
      const { page } = await openPage(await browser(), first.base, '/', DESKTOP);
      await page.locator('#connection[data-kind="live"]').waitFor();
      await first.server.stop();
      await page.locator('#connection[data-kind="lost"]').waitFor();
      t.equal(await page.locator('.card').count(), 1, 'the last known state stays visible');
      await served(
        t,
        viewOf(() => state),
        { port },
      );
      await page.locator('#connection[data-kind="live"]').waitFor();
      await page.context().close();
    },
  );

  t.test('screenshots for people', async (t) => {
    const scene = new Scene({ gpus: 8, links: (a, b) => (a < 4 === b < 4 ? 4 : 0) });
    scene.gpus[5] = {
      ...scene.gpus[5]!,
      usable: false,
      health: { status: 'reset', reason: 'XID 48 (double bit ECC error): needs a reset', sinceMs: Date.now() },
    };
    const { base, history, journal } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    for (let at = 140; at > 0; at--) history.add(scene.snapshot(Date.now() - at * 2_000));
    journal.note({ level: 'info', kind: 'Started', message: 'research/resnet-train-0/main: 30 cores of GPU 0' });
    journal.note({
      level: 'warning',
      kind: 'Health',
      message: 'GPU 5 is reset: XID 48 (double bit ECC error): needs a reset',
      gpuUuid: scene.gpus[5].uuid,
    });
    const container = `/#/container/${scene.allocations[0]?.id}`;
    const pictures = [
      ['node', '/', 'desktop', 'light'],
      ['node', '/', 'desktop', 'dark'],
      ['node', '/', 'phone', 'dark'],
      ['container', container, 'desktop', 'dark'],
      ['container', container, 'phone', 'light'],
    ] as const;
    for (const [name, path, device, colorScheme] of pictures) {
      const { page, complaints } = await openPage(await browser(), base, path, {
        ...(device === 'phone' ? PHONE : DESKTOP),
        colorScheme,
      });
      await page
        .locator(name === 'node' ? '.history .line[d^="M"]' : '.charts .line[d^="M"]')
        .first()
        .waitFor({ state: 'attached' });
      await keep(page, `${name}-${device}-${colorScheme}`, true);
      t.same(complaints, []);
      await page.context().close();
    }
  });
});

/** The elements that overlap, within `each` where that is given. Runs in the browser. */
function overlaps(page: Page, selector: string, each: string | null = null): Promise<string[]> {
  return page.evaluate(
    `(() => {
      const found = [];
      const areas = ${each === null ? '[document]' : `[...document.querySelectorAll(${JSON.stringify(each)})]`};
      for (const area of areas) {
        const boxes = [...area.querySelectorAll(${JSON.stringify(selector)})].map((element) => ({ element, box: element.getBoundingClientRect() }));
        boxes.forEach(({ element, box: a }, at) => {
          for (const { box: b } of boxes.slice(at + 1)) {
            if (a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) found.push(element.textContent);
          }
        });
      }
      return found;
    })()`,
  );
}

function focused(page: Page): Promise<string> {
  return page.evaluate('document.activeElement.textContent');
}
