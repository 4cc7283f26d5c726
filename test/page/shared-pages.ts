import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { complaintsOf, newPage, openBrowser, type OpenPage } from './browser.js';

/**
 * One browser for all tests of a file, with one page for each set of options, which goes from test to test: a page of
 * its own for each costs more CPU time than what most tests do with it. Servers of tests have different ports, so a
 * test does not find what the page stored in another one.
 */
export class SharedPages {
  #browser: Promise<Browser> | null = null;
  readonly #pages = new Map<BrowserContextOptions, Page>();
  #shown: Page | null = null;

  /** The page of these options (the same object each time), at this address and as if it were new. */
  async open(base: string, path: string, options: BrowserContextOptions): Promise<OpenPage> {
    // Else it would ask its server again and again.
    await this.#shown?.goto('about:blank');
    const known = this.#pages.get(options);
    const page = known ?? (await newPage(await (this.#browser ??= openBrowser()), options));
    if (known !== undefined) await reset(page, options);
    this.#pages.set(options, page);
    this.#shown = page;
    const complaints = complaintsOf(page, base);
    await page.goto(`${base}${path}`);
    return { page, complaints };
  }

  async close(): Promise<void> {
    await (await this.#browser)?.close();
  }
}

async function reset(page: Page, { colorScheme = null, viewport }: BrowserContextOptions): Promise<void> {
  await page.emulateMedia({ colorScheme });
  if (viewport) await page.setViewportSize(viewport);
}
