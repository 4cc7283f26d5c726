import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { test } from 'tap';
import { effectivePpm } from '../../src/gpu/share-law.js';
import { borrows, CREDIT_NS, charge, heldUpNs, lent, softGrantPpm, waitNs, wallNs } from './token-bucket.js';

const vectors = fileURLToPath(new URL('../../../native/test/share_law.vectors', import.meta.url));

function evaluate(name: string, a: readonly bigint[]): bigint {
  const number = (index: number): number => Number(a[index] ?? 0n);
  const big = (index: number): bigint => a[index] ?? 0n;
  switch (name) {
    case 'effective_ppm':
      return BigInt(effectivePpm(number(0), number(1), number(2)));
    case 'wall_ns':
      return wallNs(big(0), number(1), number(2));
    case 'charge':
      return charge(big(0), big(1), big(2), big(3));
    case 'lent':
      return lent(big(0), big(1), big(2));
    case 'borrows':
      return borrows(big(0), big(1)) ? 1n : 0n;
    case 'held_up_ns':
      return heldUpNs(big(0), big(1), big(2));
    case 'wait_ns':
      return waitNs(big(0), big(1));
    case 'soft_grant_ppm':
      return BigInt(softGrantPpm(number(0), number(1), number(2), number(3) !== 0));
    default:
      throw new Error(`no function ${name}`);
  }
}

test('the share law gives the results of the vectors that the library is tested with', (t) => {
  const lines = readFileSync(vectors, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  t.ok(lines.length > 30);
  for (const line of lines) {
    const [call = '', expected = ''] = line.split(' = ');
    const [name = '', ...words] = call.split(' ');
    t.equal(evaluate(name, words.map(BigInt)), BigInt(expected), line);
  }
  t.end();
});

test('a container that is always busy gets its share, whatever its launches cost', (t) => {
  const cost = fc.bigInt({ min: 1_000n, max: 50_000_000n });
  const late = fc.bigInt({ min: 0n, max: 20_000_000n });
  fc.assert(
    fc.property(cost, fc.integer({ min: 5, max: 95 }), late, (costNs, share, lateNs) => {
      let now = 10n ** 12n;
      let level = now;
      let used = 0n;
      const end = now + 2n * 10n ** 9n;
      while (now < end) {
        const wait = waitNs(level, now);
        // A launch takes time on the host; small launches are charged in larger pieces, as in the library.
        const piece = costNs > 500_000n ? costNs : 500_000n;
        if (wait > 0n) {
          now += wait + lateNs;
        } else {
          level = charge(level, now, wallNs(piece, effectivePpm(share, 0, 0), 0), 0n);
          used += piece;
          now += 1_000n;
        }
      }
      const got = (Number(used) / 2e9) * 100;
      // Within two seconds: the launch under way at the end, and the credit of the first sleep.
      const slack = (Number(costNs > 500_000n ? costNs : 500_000n) / 2e9) * 100 + 0.2 + (Number(lateNs) / 2e9) * share;
      t.ok(Math.abs(got - share) <= slack, `the container asked for ${share} and got ${got}`);
    }),
    { numRuns: 60 },
  );
  t.end();
});

test('an idle container saves at most the credit', (t) => {
  const now = 10n ** 12n;
  t.equal(charge(0n, now, 0n, 0n), now - CREDIT_NS);
  t.equal(charge(now - CREDIT_NS / 2n, now, 0n, 0n), now - CREDIT_NS / 2n);
  t.end();
});
