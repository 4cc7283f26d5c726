import { test } from 'tap';
import type { Page } from 'playwright-core';
import { allocation, GIB, gpu, node, served, slice, viewOf } from './fixture.js';
import { DESKTOP, keep, noBrowser, PHONE } from '../../page/browser.js';
import { SharedPages } from '../../page/shared-pages.js';
import { Scene } from './scene.js';
import { runPod, startedNode } from '../node.js';
import { simplePod } from '../pods.js';
import { cards } from '../gpus.js';
import { eventually } from '../../harness/eventually.js';

const skip = noBrowser;

const pages = new SharedPages();

/** As clouds name them. */
const CLOUD_NODE = 'gke-production-europe-west4-a100-pool-8x-7f3c9a1b-x2kd.c.a-project-of-us.internal';

test('the page shows the node', { skip }, async (t) => {
  t.teardown(() => pages.close());

  t.test('a new container appears, and disappears when it ends', async (t) => {
    const agent = await startedNode(t, { gpus: cards(2), knowsPods: true, seams: { graceMs: 0 } });
    const { page, complaints } = await pages.open(`http://127.0.0.1:${agent.agent.httpPort()}`, '/', DESKTOP);
    await page.locator('.gpu').nth(1).waitFor();
    t.equal(await page.locator('a.slice').count(), 0);
    const wanted = simplePod(30, 8);
    await runPod(agent, wanted);
    await page.locator('a.slice', { hasText: wanted.name }).waitFor();
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
    t.match(await page.locator('.container').textContent(), new RegExp(`It was default/${wanted.name}/main`));
    await page.locator('.events', { hasText: 'Freed' }).waitFor();
    t.same(
      complaints.filter((line) => !line.includes('404')),
      [],
    );
  });

  t.test('a container with parts of two GPUs has a row at each, and its page says on how many it is', async (t) => {
    const gpus = [gpu(0), gpu(1), gpu(2)];
    const half = { allocatedCores: 50, share: 50 };
    const serve = allocation('serve', [slice(gpus[0]!, half), slice(gpus[2]!, half)]);
    const { base } = await served(
      t,
      viewOf(() => node({ gpus, allocations: [serve] })),
    );
    const { page, complaints } = await pages.open(base, '/', DESKTOP);
    await page.locator('a.slice').nth(1).waitFor();
    t.same(await page.locator('a.slice .use:not(.of-memory) .number').allTextContents(), ['0 of 50 %', '0 of 50 %']);
    t.equal(await page.locator('#gpu-1 a.slice').count(), 0);
    await page.locator('a.slice').first().click();
    await page.locator('.container h2', { hasText: 'serve' }).waitFor();
    t.match(await page.locator('.container .facts').first().textContent(), /100 cores of 2 GPUs, 8 GiB/);
    t.same(complaints, []);
  });

  t.test('a GPU that becomes unhealthy is shown as unhealthy at once, with the reason', async (t) => {
    const scene = new Scene({ gpus: 4 });
    const { base } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const { page, complaints } = await pages.open(base, '/', DESKTOP);
    await page.locator('.gpu.healthy').nth(3).waitFor();
    scene.gpus[2] = {
      ...scene.gpus[2]!,
      usable: false,
      health: { status: 'lost', reason: 'fallen off the bus', sinceMs: Date.now() },
    };
    await page.locator('#gpu-2.lost .reason', { hasText: 'fallen off the bus' }).waitFor();
    t.match(await page.locator('.problems').textContent(), /GPU 2: fallen off the bus/);
    t.equal(await page.locator('.tile.lost.unusable').count(), 1, 'the picture shows the unhealthy GPU, too');
    t.same(complaints, []);
  });

  for (const [name, options] of [
    ['desktop', DESKTOP],
    ['phone', PHONE],
  ] as const) {
    t.test(`16 GPUs with 200 containers do not overlap: ${name}`, async (t) => {
      const scene = new Scene({ gpus: 16, slices: 200, links: () => 18 });
      const { base } = await served(
        t,
        viewOf(() => ({ ...scene.snapshot(), node: CLOUD_NODE })),
      );
      const { page, complaints } = await pages.open(base, '/', options);
      await page.locator('a.slice').nth(199).waitFor();
      t.same(await overlaps(page, '.tile'), [], 'GPUs of the picture');
      t.same(await overlaps(page, '.gpu'), [], 'panels of GPUs');
      t.same(await overlaps(page, 'a.slice'), [], 'containers');
      t.same(await overlaps(page, '.slice .use, .slice .name', 'a.slice'), [], 'figures of a container');
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        'the page does not scroll sideways',
      );
      await keep(page, `sixteen-gpus-${name}`);
      for (const hash of [
        '#/container/gone',
        '#/pod/a-namespace-of-a-large-department/a-pod-with-a-long-name-7f3c9a1b-x2kd',
      ]) {
        await page.evaluate(`location.hash = '${hash}'`);
        await page.locator('.container h2', { hasText: 'gone' }).waitFor();
        t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), hash);
      }
      t.same(complaints, []);
    });
  }

  t.test('every control is reachable by keyboard', async (t) => {
    const scene = new Scene({ gpus: 2 });
    const { base } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
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
    await page.locator('.gpus').waitFor();
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
    const { page, complaints } = await pages.open(base, '/', DESKTOP);
    await page.locator('a.slice').click();
    await page.locator('.container h2').waitFor();
    t.equal(await page.locator('.container h2').textContent(), evil);
    t.equal(await page.title(), 'n – GPUs');
    t.equal(await page.locator('img[src="x"], main script').count(), 0);
    t.same(complaints, []);
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
      const { page } = await pages.open(first.base, '/', DESKTOP);
      await page.locator('#connection[data-kind="live"]').waitFor();
      await first.server.stop();
      await page.locator('#connection[data-kind="lost"]').waitFor();
      t.equal(await page.locator('.gpu').count(), 1, 'the last known state stays visible');
      t.match(
        await page.locator('#as-of').textContent(),
        /The agent does not answer\. Figures as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+\./,
      );
      t.match(await style(page, 'main', 'filter'), /grayscale/, 'figures are grey');
      await served(
        t,
        viewOf(() => state),
        { port },
      );
      await page.locator('#connection[data-kind="live"]').waitFor();
      t.equal(await page.locator('#as-of').isVisible(), false);
      t.equal(await style(page, 'main', 'filter'), 'none');
    },
  );

  t.test(
    'slices of one GPU differ in colour or texture, a pod keeps its colour, and equal nodes look alike',
    async (t) => {
      const one = gpu(0);
      const other = gpu(1);
      const many = Array.from({ length: 24 }, (_, at) =>
        allocation(`pod-${at}`, [slice(one, { allocatedCores: 4 })], { allocatedAtMs: 1_000 + at }),
      );
      const wide = allocation('wide', [slice(one, { allocatedCores: 1 }), slice(other)], { allocatedAtMs: 900 });
      let allocations = [wide, ...many.slice(1)];
      const { base } = await served(
        t,
        viewOf(() => node({ gpus: [one, other], allocations })),
      );
      const { page } = await pages.open(base, '/', DESKTOP);
      await page.locator('#gpu-0 a.slice').nth(23).waitFor();
      const marks = () => each<string>(page, '#gpu-0 a.slice', "it.className.replace('slice ', '')");
      const first = await marks();
      t.equal(new Set(first).size, 24);
      t.equal(new Set(first.slice(0, 8).map((mark) => mark.split(' ')[0])).size, 8, 'the first eight differ in colour');
      t.equal(await page.locator('#gpu-1 a.slice').getAttribute('class'), `slice ${first[0]}`, 'one pod, one colour');
      await page.reload();
      await page.locator('#gpu-0 a.slice').nth(23).waitFor();
      t.same(await marks(), first);
      allocations = [wide, ...many.slice(1), allocation('late', [slice(one)], { allocatedAtMs: 9_000 })];
      await page.locator('#gpu-0 a.slice').nth(24).waitFor();
      t.same((await marks()).slice(0, 24), first, 'a new pod changes no colour');
    },
  );

  t.test('the colours differ for colour-blind readers, too, light and dark', async (t) => {
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [gpu(0)] })),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    await page.locator('.gpu').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const rgb = await tints(page);
      t.equal(new Set(rgb.map(String)).size, 8);
      for (const [reader, sight] of Object.entries(SIGHT)) {
        const seen = rgb.map((colour) => oklab(through(sight, colour)));
        const distances = seen.flatMap((a, at) =>
          seen.slice(at + 1).map((b) => Math.hypot(...a.map((x, i) => x - (b[i] ?? 0)))),
        );
        // A tenth of the way from black to white: such greys are told apart side by side.
        t.ok(Math.min(...distances) > 0.1, `${colorScheme}, ${reader}: ${Math.min(...distances).toFixed(3)}`);
      }
    }
  });

  t.test('a long pod name loses its middle, never its end', async (t) => {
    const pods = ['x7f9q', 'k2mzp'].map(
      (end) => `recommendation-model-nightly-evaluation-europe-west-66d5c8f7b9-${end}`,
    );
    const one = gpu(0);
    const allocations = pods.map((pod) =>
      allocation(pod, [slice(one)], {
        owners: [{ podUid: pod, namespace: 'team', pod, container: 'main' }],
        id: pod.slice(-5),
      }),
    );
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [one], allocations })),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    const names = page.locator('.slice .pod');
    await names.nth(1).waitFor();
    t.same(await names.allTextContents(), pods, 'the text is the whole name');
    t.same(await each(page, '.slice .pod', 'it.title'), pods);
    for (const width of [600, 390]) {
      await page.setViewportSize({ width, height: 800 });
      t.same(
        await each(page, '.slice .pod .head', 'it.scrollWidth > it.clientWidth'),
        [true, true],
        'the middle is cut',
      );
      const room = 'it.getBoundingClientRect().right - it.lastElementChild.getBoundingClientRect().right';
      for (const pixels of await each<number>(page, '.slice .pod', room)) t.ok(pixels > -0.5, 'the end is inside');
    }
  });

  t.test('the dialog of keys is a table of two aligned columns', async (t) => {
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [gpu(0)] })),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    await page.locator('.gpu').waitFor();
    await page.keyboard.press('?');
    for (const column of ['dt', 'dd']) {
      const lefts = await each<number>(page, `#keys ${column}`, 'it.getBoundingClientRect().left');
      t.ok(lefts.length > 4);
      t.equal(new Set(lefts).size, 1, column);
    }
    await keep(page, 'keys');
  });

  t.test('an address of a container that is not there says so', async (t) => {
    const { base, journal } = await served(
      t,
      viewOf(() => node({ gpus: [gpu(0)] })),
    );
    journal.note({ level: 'info', kind: 'Freed', message: 'team/old/main: its GPUs are released', allocation: 'abc1' });
    for (const id of ['abc1', 'Not an id %']) {
      const { page, complaints } = await pages.open(base, `/#/container/${encodeURIComponent(id)}`, DESKTOP);
      await page.locator('h2', { hasText: 'This container is gone' }).waitFor();
      t.match(await page.locator('.container').textContent(), new RegExp(`No allocation ${id} is on node1`));
      t.equal((await page.locator('.events .kind').allTextContents()).join(), id === 'abc1' ? 'Freed' : '');
      await page.locator('.back a').click();
      await page.locator('.gpu').waitFor();
      t.same(complaints, [], 'it asks the agent for nothing that is not there');
    }
  });

  t.test(
    'a container that is gone has its own events, not those of earlier ones with its id, and its pod has a page',
    async (t) => {
      const { base, journal } = await served(
        t,
        viewOf(() => node({ gpus: [gpu(0)] })),
      );
      for (const [namespace, kind] of [
        ['team-b', 'Freed'],
        ['team-a', 'Started'],
        ['team-a', 'Refused'],
      ] as const) {
        const owner = { podUid: namespace, namespace, pod: 'train', container: 'main' };
        journal.note({ level: 'info', kind, message: `${namespace}/train/main`, owner, allocation: 'abc1' });
      }
      const { page, complaints } = await pages.open(base, '/#/container/abc1', DESKTOP);
      await page.locator('h2', { hasText: 'This container is gone' }).waitFor();
      t.same(await page.locator('.events .kind').allTextContents(), ['Refused', 'Started']);
      await page.locator('a', { hasText: 'team-a/train/main' }).click();
      await page.locator('h2', { hasText: 'This pod is gone' }).waitFor();
      t.match(page.url(), /#\/pod\/team-a\/train$/);
      t.same(await page.locator('.events .kind').allTextContents(), ['Refused', 'Started']);
      t.same(complaints, []);
    },
  );

  t.test('the charts of a container show five minutes, or one or three hours by the minute', async (t) => {
    const one = gpu(0);
    const serve = allocation('serve', [slice(one, { share: 50 })]);
    const [owner] = serve.owners;
    if (owner === undefined) throw new Error('no owner');
    const minute = (ago: number) => ({
      ...{ atMs: Date.now() - ago * 60_000, seconds: 60, used: 15, memoryBytes: GIB },
      throttled: { share: 20, priority: 10, lending: 0 },
    });
    const minutes = [minute(30), minute(29), minute(1)];
    const use = {
      hours: async (fromMs: number) => ({ fromMs, containers: [] }),
      minutes: () => [{ owner, gpuUuid: one.uuid, minutes }],
    };
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [one], allocations: [serve] })),
      { use },
    );
    const { page, complaints } = await pages.open(base, `/#/container/${serve.id}`, DESKTOP);
    await page.locator('.ranges button[aria-pressed="true"]', { hasText: '5 min' }).waitFor();
    await page.locator('.ranges button', { hasText: '1 h' }).press('Enter');
    await page.locator('.charts figcaption', { hasText: '50 % of the time' }).waitFor();
    const [picture, line, axis] = ['.chart', '.line', '.axis'].map((part) => page.locator(`.charts ${part}`).first());
    t.equal(await picture?.getAttribute('viewBox'), '0 0 59 60');
    t.match(await picture?.getAttribute('aria-label'), 'in the last hour');
    t.match(await line?.getAttribute('d'), /^M\d+ [\d.]+L\d+ [\d.]+M\d+ [\d.]+$/, 'a gap stays a gap');
    t.match(await axis?.textContent(), '1 h ago');
    t.equal(await focused(page), '1 h', 'the keyboard stays on the button');
    t.same(complaints, []);
  });

  t.test('a claim is named beside its slice, with every container that shares it', async (t) => {
    const owners = ['trainer', 'watcher'].map((pod) => ({ podUid: pod, namespace: 'team', pod, container: 'main' }));
    const claims = ['gpu', 'more'].map((request) => ({ namespace: 'team', name: 'model', request }));
    const [first, second] = [gpu(0), gpu(1)];
    const allocations = [
      allocation('by-claim', [slice(first)], { owners, claims }),
      allocation('by-plugin', [slice(second)]),
    ];
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [first, second], allocations })),
    );
    const { page, complaints } = await pages.open(base, '/', DESKTOP);
    const shared = page.locator('a.slice', { hasText: 'watcher' });
    await shared.waitFor();
    t.equal(await shared.locator('.where').textContent(), 'team · main · and 1 other · claim');
    t.equal(await page.locator('a.slice', { hasText: 'by-plugin' }).locator('.where').textContent(), 'default · main');
    for (const words of ['team/model', 'trainer']) {
      await page.locator('#filter').fill(words);
      t.equal(await page.locator('a.slice:visible').count(), 1, `found by ${words}`);
    }
    await page.locator('#filter').fill('');
    await shared.click();
    const facts = page.locator('.container .facts').first();
    await facts.waitFor();
    t.match(await facts.textContent(), /Claimteam\/model.*Shared bytrainer\/main, watcher\/main/);
    t.same(complaints, []);
  });

  t.test('the filter applies to events and figures', async (t) => {
    const scene = new Scene({ gpus: 4, groups: ['vision', 'speech'] });
    const { base, journal } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const names = scene.allocations.map(({ owners }) => owners[0]!);
    for (const owner of names.slice(0, 2))
      journal.note({
        level: 'warning',
        kind: 'GPULimitRefused',
        message: `${owner.namespace}/${owner.pod}: too much`,
        owner,
      });
    journal.note({ level: 'info', kind: 'Driver', message: 'the GPU driver answers again' });
    const { page } = await pages.open(base, '/', DESKTOP);
    await page.locator('.events li').nth(2).waitFor();
    const figures = () => page.locator('.figures dd').allTextContents();
    const all = await figures();
    t.match(all[2], /3\.7 of 4 GPUs/);
    await page.locator('#filter').fill(names[0]!.pod);
    t.match(
      await page.locator('.matching').textContent(),
      /^Only 1 of 11 containers, by the filter “resnet-train-0”\.$/,
    );
    t.equal(await page.locator('.events li').count(), 1);
    const some = await figures();
    t.equal(some[2], '0.3 of 4 GPUs');
    t.equal(some[5], '24 of 320 GiB allocated');
    t.equal(some[6], '1 of 11');
    t.same(await page.locator('.quota tbody th').allTextContents(), ['vision']);
    await page.locator('#filter').fill('no such pod');
    t.equal(await page.locator('.matching').textContent(), 'No container matches the filter.');
    t.equal(await page.locator('.events li').count(), 0);
    await page.locator('#filter').fill('');
    t.equal(await page.locator('.events li').count(), 3);
    t.equal((await figures())[6], '11');
  });

  t.test('event times have date and zone; many equal events are one line that opens and stays open', async (t) => {
    const scene = new Scene({ gpus: 2 });
    const { base, journal } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const started = (at: number) =>
      journal.note({ level: 'info', kind: 'Started', message: `team/pod-${at}/main: 10 cores of GPU 0` });
    const refused = (pod: string) =>
      journal.note({
        level: 'warning',
        kind: 'Refused',
        message: `team/${pod}: 150 is no multiple of 100`,
        owner: { podUid: pod, namespace: 'team', pod, container: '' },
      });
    for (let at = 0; at < 40; at++) started(at);
    for (const pod of ['a', 'b', 'c']) refused(pod);
    journal.note({ level: 'warning', kind: 'Health', message: 'GPU 1 is lost' });
    const { page } = await pages.open(base, '/', {
      ...DESKTOP,
      timezoneId: 'Asia/Kolkata',
      locale: 'en-GB',
    });
    const lines = page.locator('.events > li');
    await lines.nth(2).waitFor();
    t.match((await page.locator('.events time').allTextContents())[0], /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+5:30$/);
    t.equal(await lines.count(), 3, 'a warning, three equal refusals, forty starts');
    t.match(
      await lines.nth(1).locator('summary').textContent(),
      /Refused.*3 times since .*: 150 is no multiple of 100/,
    );
    t.match(await lines.nth(2).locator('summary').textContent(), /Started.*40 times since .*latest team\/pod-39\/main/);
    await lines.nth(1).locator('summary').focus();
    await page.keyboard.press('Enter');
    t.match(
      await lines.nth(1).locator('ol').textContent(),
      /team\/c: 150.*team\/b: 150.*team\/a: 150/,
      'each pod is named',
    );
    refused('d');
    await eventually(async () => (await page.locator('.events [open] li').count()) >= 3);
    t.match(await focused(page), /Refused/, 'the focus stays on its line');
    scene.allocations = scene.allocations.slice(1);
    await eventually(async () => (await page.locator('a.slice').count()) === scene.allocations.length);
    t.equal(await page.locator('.events [open]').count(), 1, 'an opened line stays open when the page changes');
  });

  t.test('no GPU is alone in its row, at any width', async (t) => {
    for (const [gpus, widths] of [
      [4, [360, 700, 900, 1200, 1300, 1440, 1700, 2200]],
      [8, [900, 1300, 1440, 1800]],
      [16, [700, 1300, 1440, 1800]],
    ] as const) {
      const scene = new Scene({ gpus });
      const { base } = await served(
        t,
        viewOf(() => scene.snapshot()),
      );
      const { page } = await pages.open(base, '/', DESKTOP);
      await page
        .locator('.gpu')
        .nth(gpus - 1)
        .waitFor();
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 });
        const rows = async (): Promise<number[]> => {
          const tops = await each<number>(page, '.gpu', 'it.offsetTop');
          return [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
        };
        await eventually(async () => {
          const now = await rows();
          return now[0] === 1 || (now.at(-1) ?? 0) > 1;
        }, `${gpus} GPUs at ${width}`);
        await eventually(
          async () => (await page.evaluate('document.documentElement.scrollWidth <= innerWidth')) === true,
          `${gpus} at ${width}: no sideways scroll`,
        );
      }
    }
  });

  t.test('16 GPUs are shown compact; a button and a key switch, and the choice is remembered', async (t) => {
    const scene = new Scene({ gpus: 16 });
    const { base } = await served(
      t,
      viewOf(() => scene.snapshot()),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    await page.locator('.gpus.compact .gpu').nth(15).waitFor();
    const height = (): Promise<number> => page.evaluate("document.querySelector('.gpus').offsetHeight");
    const compact = await height();
    t.equal(await page.locator('#compact').getAttribute('aria-pressed'), 'true');
    await keep(page, 'compact', true);
    await page.keyboard.press('c');
    await page.locator('.gpus.full').waitFor();
    t.ok((await height()) > 2 * compact);
    await page.reload();
    await page.locator('.gpus.full').waitFor();
    await page.locator('#compact').click();
    await page.locator('.gpus.compact').waitFor();
    const eight = new Scene({ gpus: 8 });
    const { base: small } = await served(
      t,
      viewOf(() => eight.snapshot()),
    );
    const { page: other } = await pages.open(small, '/', DESKTOP);
    await other.locator('.gpus.full').waitFor();
  });

  t.test('quota groups of the pods are shown with what they use here; without labels there is no table', async (t) => {
    const one = gpu(0);
    const allocations = [
      allocation('a', [slice(one, { allocatedCores: 30, usedPercent: 12, usedMemoryBytes: GIB })], {
        quotaGroup: 'vision',
      }),
      allocation('b', [slice(one, { allocatedCores: 20, usedPercent: 5, usedMemoryBytes: GIB })], {
        quotaGroup: 'vision',
      }),
      allocation('c', [slice(one, { allocatedCores: 10 })]),
    ];
    let shown = allocations;
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [one], allocations: shown })),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    await page.locator('.quota tbody tr').nth(1).waitFor();
    t.same(await each(page, '.quota tbody tr', '[...it.children].map((cell) => cell.textContent)'), [
      ['vision', '2', '17 of 50', '2 of 8 GiB'],
      ['no label', '1', '0 of 10', '0 of 4 GiB'],
    ]);
    await page.locator('a.slice').first().click();
    t.match(await page.locator('.container .facts').first().textContent(), /Quota group ?vision/);
    shown = allocations.slice(2);
    await page.goBack();
    await eventually(async () => (await page.locator('.quota').count()) === 0);
  });

  t.test('a container with a whole GPU or a MIG instance has figures without gaps', async (t) => {
    const instance = {
      parentUuid: 'GPU-1',
      profile: '1g.10gb',
      gpuInstance: 1,
      computeInstance: 0,
      multiprocessors: 14,
    };
    const one = gpu(0, { instance });
    const all = allocation('all', [
      slice(one, {
        allocatedCores: 100,
        share: 100,
        allocatedMemoryBytes: null,
        memoryLimitBytes: null,
        usedMemoryBytes: 2 * GIB,
        counters: { ...slice(one).counters!, launches: 100, waits: 50 },
      }),
    ]);
    const { base } = await served(
      t,
      viewOf(() => node({ gpus: [one], allocations: [all] })),
    );
    const { page } = await pages.open(base, '/', DESKTOP);
    t.match(await page.locator('.gpu .facts').textContent(), /MIG 1g\.10gb of GPU-1/);
    await page.locator('a.slice').click();
    await page.locator('.device').waitFor();
    t.match(await page.locator('.device').textContent(), /2 of 16 GiB/);
    t.match(
      await page.locator('.device').textContent(),
      /Of which throttled50.*Control errornot measured: throttled less than 80 % of the time/,
    );
    t.notMatch(await page.locator('.container').textContent(), /NaN|undefined/);
  });

  t.test('the pictures of a busy node are drawn without a complaint', async (t) => {
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
      const { page, complaints } = await pages.open(base, path, device === 'phone' ? PHONE : DESKTOP);
      await page.emulateMedia({ colorScheme });
      await page
        .locator(name === 'node' ? '.history .line[d^="M"]' : '.charts .line[d^="M"]')
        .first()
        .waitFor({ state: 'attached' });
      await keep(page, `${name}-${device}-${colorScheme}`, true);
      t.same(complaints, []);
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

/** An expression over each element `it` that the selector finds. */
function each<T>(page: Page, selector: string, expression: string): Promise<T[]> {
  return page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((it) => ${expression})`);
}

function style(page: Page, selector: string, property: string): Promise<string> {
  return page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).${property}`);
}

/** The eight colours of slices, as the browser shows them now. */
function tints(page: Page): Promise<[number, number, number][]> {
  return page.evaluate(`(() => {
    const pen = document.createElement('canvas').getContext('2d');
    return [0, 1, 2, 3, 4, 5, 6, 7].map((at) => {
      const swatch = document.createElement('span');
      swatch.className = 'swatch h' + at;
      document.body.append(swatch);
      pen.fillStyle = getComputedStyle(swatch).backgroundColor;
      pen.fillRect(0, 0, 1, 1);
      swatch.remove();
      return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    });
  })()`);
}

type Matrix = readonly (readonly [number, number, number])[];

/** How people see linear RGB: Machado, Oliveira and Fernandes, 2009, at full severity. */
const SIGHT: Readonly<Record<string, Matrix>> = {
  'all cones': [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const times = (matrix: Matrix, [x, y, z]: readonly [number, number, number]): [number, number, number] => {
  const [a, b, c] = matrix.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return [a ?? 0, b ?? 0, c ?? 0];
};

/** A colour of the screen (0 to 255) as linear RGB in the eyes of such a reader. */
function through(sight: Matrix, rgb: readonly [number, number, number]): [number, number, number] {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const [x, y, z] = times(sight, [r ?? 0, g ?? 0, b ?? 0]).map((value) => Math.min(1, Math.max(0, value)));
  return [x ?? 0, y ?? 0, z ?? 0];
}

/** Linear RGB in Oklab, where distances are how different colours look. */
function oklab(rgb: readonly [number, number, number]): [number, number, number] {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    rgb,
  );
  const [l, m, s] = cones.map(Math.cbrt);
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    [l ?? 0, m ?? 0, s ?? 0],
  );
}

function focused(page: Page): Promise<string> {
  return page.evaluate('document.activeElement.textContent');
}
