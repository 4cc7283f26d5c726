// Makes the pictures of the documents from the demo, without its steps: the page of the node and the console, light and
// dark, and top in a terminal. Refuses a picture that does not add up. Needs a build, the native part, Chromium and python3.
/* global AbortController, document, window, ReadableStreamDefaultReader, requestAnimationFrame, setTimeout */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../dist/src/host/log.js';
import { Demo } from '../dist/src/simulation/demo.js';
import { PseudoTerminal } from '../dist/test/harness/pseudo-terminal.js';
import { noBrowser, openBrowser } from '../dist/test/page/browser.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** So long the programs work before the pictures, so that the charts show something. */
const WORK_MS = 75_000;
/** So long a page may take to show figures that add up. */
const PATIENCE_MS = 120_000;
const SIZE = { width: 1280, height: 800 };
/** Below the last element of a page. */
const MARGIN = 32;
/** A figure may differ so much from the sum of rounded ones. */
const ROUNDING = 3;

if (noBrowser !== false) {
  console.error(`pictures: ${noBrowser}`);
  process.exit(1);
}
const directory = await mkdtemp(join(tmpdir(), 'gpu-pictures-'));
const anyPort = { port: 0, address: '127.0.0.1' };
const demo = new Demo(directory, silentLog(), anyPort, anyPort);
try {
  await demo.start();
  await demo.liveOn();
  await delay(WORK_MS);
  const browser = await openBrowser();
  await picturesOfNode(browser, `http://127.0.0.1:${demo.node.agent.httpPort()}`);
  await picturesOfConsole(browser, `http://127.0.0.1:${demo.consolePort}`);
  await pictureOfTop(browser, demo.node.config.displaySocket);
  await browser.close();
} finally {
  await demo.stop();
  await rm(directory, { recursive: true, force: true });
}
process.exit();

async function picturesOfNode(browser, address) {
  const page = await open(browser, address);
  await page.locator('.history .line[d^="M"]').first().waitFor({ state: 'attached' });
  await addingUp(page);
  await inBothColours(page, 'page-light', 'page-dark');
  await page.close();
}

async function picturesOfConsole(browser, address) {
  const page = await open(browser, address);
  await page.locator('.bars .segment').first().waitFor();
  await freeze(page, true);
  const wrong = await page.evaluate(wrongBars);
  if (wrong.length > 0) throw new Error(`no picture of the console: ${wrong.join('; ')}`);
  await inBothColours(page, 'console', 'console-dark');
  await page.evaluate(`location.hash = '#/quota'`);
  await page.locator('.quota .meter').first().waitFor();
  await keep(page, 'console-quota');
  await freeze(page, false);
  await page.evaluate(`location.hash = '#/waiting'`);
  await page.locator('a.pod', { hasText: 'llm-pretrain' }).click();
  await page.locator('.nodes-explained').waitFor();
  await page.mouse.move(0, 0);
  await keep(page, 'console-waiting');
  await page.close();
}

/** The screen of `gpu-manager top`, drawn with the colours of a terminal. */
async function pictureOfTop(browser, socket) {
  const [rows, columns] = [14, 112];
  const command = [process.execPath, `${ROOT}dist/src/cli/main.js`, 'top', '--display-socket', socket];
  const terminal = new PseudoTerminal(command, { rows, columns, environment: { NO_COLOR: undefined } });
  await terminal.until('several samples are shown', () => /▁|▂|▃|▄|▅|▆|▇|█/u.test(terminal.text));
  await delay(15_000);
  await terminal.until('no container uses more than its share', () =>
    [...terminal.text.matchAll(/(\d+)\/(\d+) %/gu)].every(([, used, most]) => Number(used) <= Number(most)),
  );
  const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: 1 });
  await page.setContent(
    `<style>body{margin:0;background:#16181d}pre{display:inline-block;margin:0;padding:14px 18px;background:#16181d;color:#d6d8de;font:14px/1.35 "DejaVu Sans Mono",monospace}</style><pre></pre>`,
  );
  await page.evaluate((lines) => {
    for (const line of lines) {
      for (const { text, color, isBold, isInverse } of line) {
        const span = document.createElement('span');
        span.textContent = text;
        span.style.cssText = isInverse ? 'background:#d6d8de;color:#16181d' : `color:${color}`;
        if (isBold) span.style.fontWeight = 'bold';
        document.querySelector('pre').append(span);
      }
      document.querySelector('pre').append('\n');
    }
  }, terminal.styled);
  terminal.press('q');
  await terminal.ended;
  await page.locator('pre').screenshot({ path: `${ROOT}docs/top.png`, timeout: PATIENCE_MS });
  console.log('docs/top.png');
  await page.close();
}

/** A page whose stream can be held, so that the same figures stay for several pictures. */
async function open(browser, address) {
  const page = await browser.newPage({
    viewport: SIZE,
    colorScheme: 'light',
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
  });
  await page.addInitScript(() => {
    const { read } = ReadableStreamDefaultReader.prototype;
    const { abort } = AbortController.prototype;
    // A page that is held for long would take its connection for lost.
    AbortController.prototype.abort = function (reason) {
      if (!window.isFrozen) abort.call(this, reason);
    };
    ReadableStreamDefaultReader.prototype.read = async function () {
      const part = await read.call(this);
      while (window.isFrozen) await new Promise((resolve) => setTimeout(resolve, 20));
      return part;
    };
  });
  await page.goto(address);
  return page;
}

function freeze(page, isFrozen) {
  return page.evaluate((value) => void (window.isFrozen = value), isFrozen);
}

/** The same figures, light and dark. */
async function inBothColours(page, light, dark) {
  await keep(page, light);
  await page.emulateMedia({ colorScheme: 'dark' });
  await keep(page, dark);
  await page.emulateMedia({ colorScheme: 'light' });
  await freeze(page, false);
}

/** The page as far as it has content. */
async function keep(page, name) {
  const path = `docs/${name}.png`;
  const bottom = await page.evaluate(() =>
    Math.max(...[...document.querySelectorAll('main *')].map((element) => element.getBoundingClientRect().bottom)),
  );
  const clip = { x: 0, y: 0, width: SIZE.width, height: Math.ceil(bottom + MARGIN) };
  await writeFile(`${ROOT}${path}`, await page.screenshot({ fullPage: true, clip, timeout: PATIENCE_MS }));
  console.log(path);
}

/** Holds the page of the node at figures that add up; gives up after a while. */
async function addingUp(page) {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    await freeze(page, true);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const wrong = contradictionsIn(await page.evaluate(seen));
    if (wrong.length === 0) return;
    if (performance.now() > until) throw new Error(`no picture of the node: ${wrong.join('; ')}`);
    await freeze(page, false);
    await delay(300);
  }
}

/** What the page shows of each GPU: figures, and widths of bars as drawn and as wanted. Runs in the browser. */
function seen() {
  const numbers = (element) => (element?.textContent.match(/[\d.]+/gu) ?? []).map(Number);
  return [...document.querySelectorAll('.gpu')].map((gpu) => ({
    name: gpu.id,
    figure: numbers(gpu.querySelector('.gpu-bar .figure')),
    memory: numbers(gpu.querySelectorAll('.gpu-bar .figure')[1]),
    slices: [...gpu.querySelectorAll('.slice')].map((slice) => ({
      pod: slice.querySelector('.pod')?.textContent ?? '',
      cores: numbers(slice.querySelector('.use .number')),
      memory: numbers(slice.querySelector('.of-memory .number')),
    })),
    bars: [...gpu.querySelectorAll('.fill, .segment')].map((bar) => ({
      drawn: (bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width) * 100,
      wanted: Number.parseFloat(bar.style.width),
    })),
  }));
}

/** The bars of the console whose segments are not as long as what is allocated. Runs in the browser. */
function wrongBars() {
  return [...document.querySelectorAll('.bars .track')].flatMap((track) => {
    const [, allocated] = /: ([\d.]+) of 100 cores/u.exec(track.title) ?? [];
    const shown = [...track.querySelectorAll('.segment')].reduce((sum, { style }) => sum + parseFloat(style.width), 0);
    return Math.abs(shown - Number(allocated)) > 0.5 ? [`${track.title}: the bar shows ${shown}`] : [];
  });
}

/** Why figures of a page contradict each other: a share above its limit, a GPU unlike its containers, moving bars. */
function contradictionsIn(gpus) {
  return gpus.flatMap(({ name, figure: [used = 0], memory: [held = 0], slices, bars }) => {
    const sum = slices.reduce((all, { cores: [of = 0] }) => all + of, 0);
    const heldBySlices = slices.reduce((all, { memory: [of = 0] }) => all + of, 0);
    return [
      ...slices.flatMap(({ pod, cores: [of = 0, most = 0], memory: [bytes = 0, limit = 0] }) => [
        ...(of > most ? [`${name}: ${pod} uses ${of} of ${most} %`] : []),
        ...(bytes > limit ? [`${name}: ${pod} holds ${bytes} of ${limit} GiB`] : []),
      ]),
      ...(Math.abs(used - sum) > ROUNDING ? [`${name} is used ${used} %, its containers ${sum} %`] : []),
      ...(heldBySlices > held + 0.2 ? [`${name} holds ${held} GiB, its containers ${heldBySlices}`] : []),
      ...(bars.some(({ drawn, wanted }) => Math.abs(drawn - wanted) > 2) ? [`${name}: a bar moves`] : []),
    ];
  });
}
