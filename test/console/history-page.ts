import { test } from 'tap';
import { DESKTOP, noBrowser } from '../page/browser.js';
import { openSharedPage } from '../page/shared-browser.js';
import { nodeObject } from './cluster-objects.js';
import { runningConsole } from './fixture.js';
import { listening, rangeHandler } from './prometheus-server.js';

test('the page draws the history, and says why there is none', { skip: noBrowser }, async (t) => {
  let isAway = false;
  const answer = rangeHandler(() => [{ metric: {}, at: () => 0.375 }]);
  const url = await listening(t, (request, response, at) =>
    isAway ? void response.writeHead(502).end('bad gateway') : answer(request, response, at),
  );
  const console = await runningConsole(
    t,
    (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
    },
    { prometheus: { url, caFile: null, tokenFile: null }, tokenReview: false },
  );
  const { page } = await openSharedPage(console.base, '/', DESKTOP);
  await page.locator('.history-charts figure').nth(2).waitFor();
  t.match(await page.locator('.history-charts').textContent(), /38 %.*1 hour ago.*Utilization/s);
  t.match(await page.locator('.history-charts .line').first().getAttribute('d'), /^M0 /);
  isAway = true;
  await page.locator('.ranges button', { hasText: '7 days' }).click();
  await page.locator('.past', { hasText: /no API of Prometheus answers there \(status 502\).*\./ }).waitFor();
  t.equal(await page.locator('a.node').count(), 1, 'the rest of the page stays');
});
