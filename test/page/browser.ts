import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { timeLimit } from '../harness/time-factor.js';

const EXECUTABLE = '/usr/bin/chromium';
/** Whether screenshots are kept: they take a fifteenth of the CPU time of the tests of pages, and no test reads one. */
export const keepsScreenshots = process.env.GPU_MANAGER_SCREENSHOTS === '1';
const ARTEFACTS = fileURLToPath(new URL('../../../test/artefacts/', import.meta.url));

/** Reason why no browser can run here; false where one can. */
export const noBrowser: string | false = existsSync(EXECUTABLE) ? false : `${EXECUTABLE} is not installed`;

/** A headless browser that connects to the server of the test only. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    timeout: timeLimit(120_000),
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      // Fewer processes take less CPU time; the pages of tests are of one site.
      '--in-process-gpu',
      '--process-per-site',
      '--renderer-process-limit=1',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export const DESKTOP: BrowserContextOptions = { viewport: { width: 1440, height: 900 } };
export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
};

export interface OpenPage {
  readonly page: Page;
  /** Script errors, policy violations and requests to another host; a test expects none. */
  readonly complaints: string[];
}

/** A page in a context of its own. */
export async function openPage(
  browser: Browser,
  base: string,
  path: string,
  options: BrowserContextOptions,
): Promise<OpenPage> {
  const page = await newPage(browser, options);
  return { page, complaints: await visit(page, base, path) };
}

/** Loads a path; the array gets what the page complains of from then on. */
export async function visit(page: Page, base: string, path: string): Promise<string[]> {
  const complaints = complaintsOf(page, base);
  await page.goto(`${base}${path}`);
  return complaints;
}

/** An empty page in a context of its own. */
export async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(timeLimit(120_000));
  return context.newPage();
}

/** What a page complains of from now on, while it shows this server; its earlier complaints stay as they are. */
export function complaintsOf(page: Page, base: string): string[] {
  const complaints: string[] = [];
  page.removeAllListeners('pageerror').removeAllListeners('console').removeAllListeners('request');
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(base)) complaints.push(`asked for ${request.url()}`);
  });
  return complaints;
}

/** Keeps a screenshot under test/artefacts for people to look at, if GPU_MANAGER_SCREENSHOTS is 1. */
export async function keep(page: Page, name: string, fullPage = false): Promise<void> {
  if (!keepsScreenshots) return;
  mkdirSync(ARTEFACTS, { recursive: true });
  // A loaded machine draws slowly.
  await page.screenshot({ path: join(ARTEFACTS, `${name}.png`), fullPage, timeout: 120_000 });
}
