import fc from 'fast-check';
import { test } from 'tap';
import { amountOf, minus, plus, times, quotientOf, type Amount } from '../../src/manifests/amount.js';
import { amounts } from '../../src/manifests/quantities.js';
import {
  HOUR_MS,
  amount,
  formatAmount,
  formatCash,
  formatQuantity,
  parseQuantity,
  readQuantity,
  wholeQuantity,
} from '../../src/manifests/quantity.js';

const read = (text: string, decimals = 0, round: 'up' | 'down' = 'up') => {
  const parsed = parseQuantity(text, decimals, round);
  return parsed.ok ? BigInt(parsed.amount) : parsed.code;
};

test('quantities are read in the format of Kubernetes', (t) => {
  const cases: readonly (readonly [string, number, bigint])[] = [
    ['0', 0, 0n],
    ['1', 0, 1n],
    ['+1', 0, 1n],
    ['-1', 0, -1n],
    ['01', 0, 1n],
    ['1.', 0, 1n],
    ['.5', 3, 500n],
    ['1.5', 3, 1500n],
    ['500m', 3, 500n],
    ['1k', 0, 1000n],
    ['1M', 0, 1_000_000n],
    ['1Ki', 0, 1024n],
    ['1.5Gi', 0, 1_610_612_736n],
    ['8Gi', 0, 8n * 2n ** 30n],
    ['7Ei', 0, 7n * 2n ** 60n],
    ['1e3', 0, 1000n],
    ['1E3', 0, 1000n],
    ['12e-1', 3, 1200n],
    ['1E', 0, 10n ** 18n],
    ['1000n', 3, 1n],
    ['1u', 3, 1n],
    ['9223372036854775807', 0, 2n ** 63n - 1n],
    ['0e99', 0, 0n],
    ['0.000', 3, 0n],
    ['1e-99', 3, 1n],
  ];
  for (const [text, decimals, expected] of cases) t.equal(read(text, decimals), expected, text);
  t.end();
});

test('an invalid quantity is refused', (t) => {
  for (const text of [
    '',
    ' ',
    '.',
    '+',
    '1 ',
    ' 1',
    '4 cores',
    '1ki',
    '1KI',
    '1i',
    '1e',
    '1e+',
    '1.2.3',
    '0x10',
    'NaN',
    'Infinity',
    '1,5',
    '١',
    '1e99999',
    `1${'0'.repeat(70)}`,
    '1\n',
  ]) {
    t.equal(read(text), 'InvalidQuantity', JSON.stringify(text));
  }
  t.end();
});

test('a quantity beyond 64 bits is refused in every notation', (t) => {
  for (const text of ['9223372036854775808', '8Ei', '1e19', '1e9999', '-9223372036854775808', '9'.repeat(60), '10E'])
    t.equal(read(text), 'QuantityTooLarge', text);
  t.equal(read('9223372036854775807', 3), 'QuantityTooLarge', 'thousandths');
  t.end();
});

test('a fraction of a thousandth is charged as one thousandth, as in kube-scheduler', (t) => {
  const milli = (text: string | number) => {
    const parsed = readQuantity('cpu', text, 'up');
    return parsed.ok ? parsed.amount : parsed.code;
  };
  for (const text of ['0.0001', '100u', '999n', 0.0001]) t.equal(milli(text), 1, String(text));
  t.equal(milli('1.0001'), 1001);
  t.end();
});

test('a whole quantity has no fraction, is a safe integer, and is readable', (t) => {
  const rows: readonly (readonly [string | number, number | null])[] = [
    ['30', 30],
    ['+7', 7],
    ['-2', -2],
    ['1k', 1_000],
    ['1500m', null],
    ['2000m', 2],
    ['2Ki', 2_048],
    ['1.5k', 1_500],
    ['.5k', 500],
    ['5.', 5],
    ['1.3333Gi', null],
    ['1Ei', null],
    ['8Ei', null],
    ['', null],
    ['1kk', null],
    ['1e99', null],
    [7, 7],
    [0.5, null],
    [1e21, null],
    [NaN, null],
  ];
  for (const [text, whole] of rows) t.equal(wholeQuantity(text), whole, String(text));
  t.doesNotThrow(() => fc.assert(fc.property(fc.maxSafeInteger(), (value) => wholeQuantity(String(value)) === value)));
  t.end();
});

test('requests are rounded up, limits are rounded down', (t) => {
  t.equal(read('0.0001', 3, 'up'), 1n);
  t.equal(read('0.0001', 3, 'down'), 0n);
  t.equal(read('1.5', 0, 'up'), 2n);
  t.equal(read('1.5', 0, 'down'), 1n);
  t.equal(read('-1.5', 0, 'up'), -1n);
  t.equal(read('-1.5', 0, 'down'), -2n);
  t.end();
});

test('numbers are read as units, bigints as base units', (t) => {
  t.same(readQuantity('limits.cpu', 1.5, 'up'), { ok: true, amount: 1500 });
  t.same(readQuantity('limits.cpu', 1500n, 'up'), { ok: true, amount: 1500 });
  t.same(readQuantity('limits.memory', 1e21, 'up').ok, false);
  t.same(readQuantity('limits.cpu', 1e-7, 'up'), { ok: true, amount: 1 });
  t.equal(readQuantity('limits.cpu', NaN, 'up').ok, false);
  t.equal(readQuantity('limits.cpu', Infinity, 'up').ok, false);
  t.equal(readQuantity('limits.cpu', 2n ** 63n, 'up').ok, false);
  t.same(readQuantity('limits.cpu', -0, 'up'), { ok: true, amount: 0 });
  t.equal(readQuantity('limits.cpu', {} as string, 'up').ok, false, 'an object that came out of JSON');
  t.end();
});

test('a formatted amount reads back as the same amount', (t) => {
  fc.assert(
    fc.property(
      fc.bigInt(0n, 2n ** 63n - 1n),
      fc.constantFrom('limits.cpu', 'limits.memory', 'requests.nvidia.com/gpu', 'gpu.cards', 'pods'),
      (value, key) => {
        const again = readQuantity(key, formatQuantity(key, value), 'down');
        return again.ok && BigInt(again.amount) === value;
      },
    ),
  );
  t.end();
});

test('the fast path for plain quantities gives the same results as the general path', (t) => {
  const digits = fc.oneof(fc.stringMatching(/^\d{1,20}$/), fc.nat(10_000).map(String));
  const suffix = fc.constantFrom('', 'm', 'k', 'M', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'i', 'toString');
  fc.assert(
    fc.property(
      digits,
      suffix,
      fc.constantFrom(0, 3),
      fc.constantFrom('up' as const, 'down' as const),
      (number, unit, decimals, round) =>
        // A sign uses the general path.
        read(`${number}${unit}`, decimals, round) === read(`+${number}${unit}`, decimals, round),
    ),
    { numRuns: 2000 },
  );
  t.end();
});

test('amounts are printed in readable units', (t) => {
  t.equal(formatQuantity('limits.cpu', 1500), '1500m');
  t.equal(formatQuantity('limits.cpu.A4', 2000), '2');
  t.equal(formatQuantity('limits.memory', 8 * 2 ** 30), '8Gi');
  t.equal(formatQuantity('requests.memory.A4', 1000), '1000');
  t.equal(formatQuantity('requests.nvidia.com/gpu', 8), '8');
  t.equal(formatQuantity('requests.example.com/cpu', 8), '8', 'a resource that only ends like cpu');
  t.equal(formatCash('limits.cpu', 100n * 1000n * HOUR_MS), '100');
  t.equal(formatCash('limits.cpu', (1000n * HOUR_MS) / 3n), '0.3333');
  t.equal(formatCash('limits.cpu', (-1000n * HOUR_MS) / 2n), '-0.5');
  t.equal(formatCash('limits.memory', 2n ** 30n * HOUR_MS), '1Gi');
  t.end();
});

test('arithmetic on amounts is exact on both sides of 2^53', (t) => {
  const value = fc.oneof(
    fc.bigInt(-(2n ** 54n), 2n ** 54n),
    fc.bigInt(-(2n ** 64n), 2n ** 64n),
    fc.bigInt(-1000n, 1000n),
  );
  const one = (amount: Amount): boolean =>
    typeof amount === 'number'
      ? Number.isSafeInteger(amount) && !Object.is(amount, -0)
      : !Number.isSafeInteger(Number(amount));
  fc.assert(
    fc.property(value, value, (a, b) => {
      const [sum, difference, product] = [
        plus(amountOf(a), amountOf(b)),
        minus(amountOf(a), amountOf(b)),
        times(amountOf(a), amountOf(b)),
      ];
      return (
        BigInt(sum) === a + b &&
        BigInt(difference) === a - b &&
        BigInt(product) === a * b &&
        one(sum) &&
        one(difference) &&
        one(product)
      );
    }),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 62n), fc.bigInt(1n, 2n ** 54n), (whole, part) => {
      const times_ = BigInt(quotientOf(amountOf(whole), amountOf(part)));
      return times_ === whole / part || times_ > 2n ** 53n;
    }),
    { numRuns: 2000 },
  );
  t.end();
});

test('amounts are written and read without knowing the base units', (t) => {
  for (const [key, text, expected] of [
    ['limits.cpu', '4', 4000n],
    ['requests.cpu', '500m', 500n],
    ['limits.memory', '8Gi', 8n * 2n ** 30n],
    ['requests.nvidia.com/gpu', '4', 4n],
    ['pods', '10', 10n],
    ['cash/limits.cpu', '1.5', 1500n * HOUR_MS],
  ] as const) {
    t.equal(amount(key, text), expected, key);
    t.equal(formatAmount(key, expected), text, key);
  }
  t.equal(amount('limits.cpu', 4), 4000n);
  t.throws(() => amount('limits.cpu', '4x'), new RangeError('limits.cpu: "4x" is not a quantity'));
  t.end();
});

test('amounts for the arbitrator are read by resource', (t) => {
  t.strictSame(
    amounts({ cpu: '64', memory: '1Gi', 'nvidia.com/gpu': 8 }),
    new Map([
      ['cpu', 64_000],
      ['memory', 2 ** 30],
      ['nvidia.com/gpu', 8],
    ]),
  );
  t.throws(() => amounts({ memory: '9Pi' }), /memory: 9Pi is beyond 2\^53/);
  t.end();
});
