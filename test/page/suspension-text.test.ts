import { test } from 'tap';
import type { SuspensionSnapshot } from '../../src/agent/node/index.js';
import { suspensionText } from '../../src/cli/kubectl/suspension-text.js';

interface PageFormat {
  suspensionText(suspension: SuspensionSnapshot, now: number): string;
}

const NOW_MS = 1_800_000_000_000;

test('the page says in the same words as kubectl gpu why a container is suspended', async (t) => {
  const page = (await import(
    new URL('../../../src/page/parts/format.js', import.meta.url).href
  )) as unknown as PageFormat;
  for (const by of ['operator', 'pod', 'idle', 'turn'] as const) {
    const suspension: SuspensionSnapshot = {
      ...{ step: 'suspended', sinceMs: NOW_MS - 60_000, by, held: false, hostBytes: 2 ** 30 },
      wantsSinceMs: NOW_MS - 30_000,
    };
    const [words = ''] = suspensionText(suspension, NOW_MS).split(',');
    t.ok(words.length > 'suspended '.length);
    t.ok(page.suspensionText(suspension, NOW_MS).startsWith(`${words},`), words);
  }
});
