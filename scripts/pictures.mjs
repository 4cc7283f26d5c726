// Makes the pictures of the documents: the page of the node while the real demo runs, light and dark. Needs a build,
// the native part and Chromium.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { noBrowser, openBrowser } from '../dist/test/page/browser.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** So long the programs work before the pictures, so that the charts show something. */
const WORK_MS = 90_000;

if (noBrowser !== false) {
  console.error(`pictures: ${noBrowser}`);
  process.exit(1);
}
const demo = spawn(process.execPath, ['dist/src/cli/main.js', 'demo', '--query-port', '0'], {
  cwd: ROOT,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = once(demo, 'exit');
try {
  const address = await pageOf(demo);
  await delay(WORK_MS);
  const browser = await openBrowser();
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({
      viewport: { width: 1280, height: 800 },
      colorScheme,
      reducedMotion: 'reduce',
    });
    await page.goto(address);
    await page.locator('.history .line[d^="M"]').first().waitFor({ state: 'attached' });
    const path = `docs/page-${colorScheme}.png`;
    await page.screenshot({ path: `${ROOT}${path}`, fullPage: true, timeout: 120_000 });
    console.log(path);
  }
  await browser.close();
} finally {
  demo.kill('SIGINT');
  await ended;
}

/** The address that the demo prints when its programs work. */
async function pageOf({ stdout }) {
  for await (const line of createInterface(stdout)) {
    console.log(line);
    const address = /^The page of the node: (\S+)$/.exec(line)?.[1];
    if (address !== undefined) {
      stdout.resume();
      return address;
    }
  }
  throw new Error('the demo ended before its page was there');
}
