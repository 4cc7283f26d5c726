import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * What axe-core finds wrong with the page as it is now: the rule, the element, and how to mend it. `rules` are the
 * ids of the rules to check; all of them by default.
 */
export async function violationsOn(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  await page.evaluate(`window.axe ??= (() => { ${axe.source}; return axe; })()`);
  const { violations } = await page.evaluate<{ readonly violations: readonly Violation[] }>(
    `axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], runOnly: rules })})`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)}: ${failureSummary.replaceAll('\n', ' ')}`,
    ),
  );
}
