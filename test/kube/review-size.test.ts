import fc from 'fast-check';
import { test } from 'tap';
import { hasMoreFields, isDeletion, uidOfText } from '../../src/kube/admission/review-size.js';

/** Fields, list items after the first, lists and objects, as JSON has commas and opening brackets. */
function fieldsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  return 1 + Math.max(0, inner.length - 1) + inner.reduce<number>((sum, one) => sum + fieldsOf(one), 0);
}

test('fields are counted as parsing would, whatever strings contain', (t) => {
  const property = fc.property(fc.jsonValue(), fc.boolean(), (value, indented) => {
    const text = JSON.stringify(value, null, indented ? 2 : 0);
    const fields = fieldsOf(JSON.parse(text));
    return !hasMoreFields(text, fields) && (fields === 0 || hasMoreFields(text, fields - 1));
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.notOk(hasMoreFields(JSON.stringify({ text: ',[{"\\,'.repeat(1_000) }), 1));
  t.ok(hasMoreFields('['.repeat(101), 100), 'a text that is no JSON');
  t.end();
});

test('UID and operation of a review are read from its beginning', (t) => {
  const text = '{"kind":"AdmissionReview","request":{"uid":"705ab4f5-6393","kind":{}}}';
  t.equal(uidOfText(text), '705ab4f5-6393');
  t.equal(uidOfText('{"request":{"object":{}}}'), null);
  t.notOk(isDeletion('{"request":{"uid":"u","operation":"UPDATE"}}'));
  t.ok(isDeletion('{"request":{"uid":"u","operation":"DELETE"}}'));
  t.end();
});
