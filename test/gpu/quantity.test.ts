import fc from 'fast-check';
import { test } from 'tap';
import { parseQuantity, wholeQuantity } from '../../src/gpu/quantity.js';

const VECTORS: readonly (readonly [string, number | null])[] = [
  ['0', 0],
  ['30', 30],
  ['+7', 7],
  ['-2', -2],
  ['1k', 1_000],
  ['1500m', null],
  ['2000m', 2],
  ['2Ki', 2_048],
  ['1.5k', 1_500],
  ['3e2', 300],
  ['3E2', 300],
  ['1M', 1_000_000],
  ['1Gi', 1_073_741_824],
  ['.5k', 500],
  ['5.', 5],
  ['1Ei', null],
  ['', null],
  ['k', null],
  ['1 ', null],
  ['1kk', null],
  ['0x10', null],
  ['1e', null],
  ['NaN', null],
  ['1e99', null],
];

test('quantities are read as the API server writes them', (t) => {
  for (const [text, value] of VECTORS) t.equal(wholeQuantity(text), value, text);
  t.end();
});

test('every whole number is itself', (t) => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.maxSafeInteger(), (value) => wholeQuantity(String(value)) === value)));
  t.end();
});

test('quantities that are not whole are read too, without an error of rounding', (t) => {
  const rows: [string | number, number | null][] = [
    ['500m', 0.5],
    ['0.5', 0.5],
    ['16Gi', 16 * 2 ** 30],
    ['2E', 2e18],
    ['100u', 1e-4],
    ['12e-1', 1.2],
    ['-1', -1],
    [7, 7],
    [0.25, 0.25],
    [NaN, null],
    [Infinity, null],
    ['Infinity', null],
    ['1 Gi', null],
    ['1GiB', null],
    ['1K', null],
    ['1m2', null],
    ['1'.repeat(50), null],
  ];
  for (const [text, expected] of rows) t.equal(parseQuantity(text), expected, String(text));
  t.end();
});
