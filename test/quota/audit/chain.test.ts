import fc from 'fast-check';
import { test } from 'tap';
import { AuditChain, CHAIN_START, verifyChain } from '../../../src/quota/audit/chain.js';
import { Quota } from '../../../src/quota/index.js';

function chainOf(count: number): { readonly lines: string[]; readonly chain: AuditChain } {
  const quota = new Quota();
  const chain = new AuditChain();
  const lines: string[] = [];
  quota.on((event) => lines.push(chain.append(event)));
  quota.createGroup({ name: 'g', hard: { 'limits.cpu': 5 } });
  for (let index = 1; index < count; index++)
    quota.admit({
      workload: { kind: 'Job', name: `w${index}` },
      group: 'g',
      podSets: [{ count: 1, limits: { cpu: 1 } }],
    });
  return { lines, chain };
}

test('verification accepts an unchanged chain and reports its head', async (t) => {
  const { lines, chain } = chainOf(8);
  t.same(await verifyChain(lines), { ok: true, end: chain.end });
  t.equal(chain.end.sequence, 8);
  t.same(await verifyChain([]), { ok: true, end: CHAIN_START });
  t.match(JSON.parse(lines[7] ?? ''), { sequence: 8, event: { type: 'denied', code: 'QuotaExceeded' } });
});

test('verification finds every changed, removed, inserted or moved line', async (t) => {
  const { lines } = chainOf(12);
  const damage = fc.oneof(
    fc.nat(10).map((at) => lines.filter((_, index) => index !== at)),
    fc
      .tuple(fc.nat(10), fc.nat(10))
      .filter(([a, b]) => a !== b)
      .map(([a, b]) => lines.map((line, index) => (index === a ? lines[b] : index === b ? lines[a] : line) ?? '')),
    fc.nat(11).map((at) => [...lines.slice(0, at), lines[at] ?? '', ...lines.slice(at)]),
    fc.tuple(fc.nat(11), fc.nat(), fc.constantFrom('0', '1', 'a', '"', '}')).map(([at, place, character]) =>
      lines.map((line, index) => {
        if (index !== at) return line;
        const where = place % line.length;
        return line[where] === character ? `${line} ` : line.slice(0, where) + character + line.slice(where + 1);
      }),
    ),
    fc
      .string({ minLength: 1 })
      .filter((text) => text !== '')
      .map((text) => [...lines, text]),
  );
  await fc.assert(
    fc.asyncProperty(damage, async (damaged) => !(await verifyChain(damaged)).ok),
    { numRuns: 500 },
  );
  t.end();
});

test('a rewritten line breaks the chain after it', async (t) => {
  const { lines } = chainOf(4);
  const forged = new AuditChain({ sequence: 1, digest: 'f'.repeat(64) }).append({
    type: 'admitted',
    at: 0,
    revision: 2,
    group: 'g',
  });
  t.match(await verifyChain([lines[0] ?? '', forged, ...lines.slice(2)]), { ok: false, line: 2 });
});
