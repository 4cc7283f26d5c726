import type { Page } from 'playwright-core';
import tap from 'tap';
import { DESKTOP, keepsScreenshots } from '../page/browser.js';
import { SharedPages } from '../page/shared-pages.js';
import type { RunningConsole } from './fixture.js';

/** The pages of all tests of the console: one browser for the process. */
export const consolePages = new SharedPages();

tap.teardown(() => consolePages.close());

/** Dark mode changes colours alone: people look at it. */
export const SCHEMES = keepsScreenshots ? (['light', 'dark'] as const) : (['light'] as const);

/** Opens the page of a console and enters the token of a user. */
export async function openConsole(
  { base }: RunningConsole,
  user: string,
  options = DESKTOP,
  path = '/',
): Promise<{ readonly page: Page; readonly complaints: () => string[] }> {
  const { page, complaints } = await consolePages.open(base, path, options);
  await page.locator('#token-text').fill(user);
  await page.locator('#token-text').press('Enter');
  // Until it has a token, the page is refused.
  return { page, complaints: () => complaints.filter((line) => !line.includes('401')) };
}
