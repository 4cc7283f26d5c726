import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import tap from 'tap';
import { newPage, openBrowser, visit } from './browser.js';

let browser: Promise<Browser> | null = null;
const pages = new Map<BrowserContextOptions, Page>();

/**
 * A page as `openPage` opens one, in one browser for all tests of the process, which closes after the last of them.
 * Tests with the same options object get the same page one after another: a new one costs as much as a short test.
 * What it has stored belongs to the origin of an earlier test.
 */
export async function openSharedPage(
  base: string,
  path: string,
  options: BrowserContextOptions,
): Promise<{ readonly page: Page; readonly complaints: string[] }> {
  if (browser === null) {
    browser = openBrowser();
    tap.teardown(async () => (await browser)?.close());
  }
  const page = pages.get(options) ?? (await newPage(await browser, options));
  pages.set(options, page);
  // What the page of the last test still asks for, its server no longer answers.
  await page.goto('about:blank');
  for (const event of ['pageerror', 'console', 'request'] as const) page.removeAllListeners(event);
  return { page, complaints: await visit(page, base, path) };
}
