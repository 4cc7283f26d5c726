import { test } from 'tap';
import { readReview } from '../../src/kube/admission/review.js';

const REVIEW = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };

for (const [what, text] of [
  ['null', 'null'],
  ['a number', '1'],
  ['a list', '[]'],
  ['invalid JSON', '{'],
  ['a review without a request', JSON.stringify(REVIEW)],
  ['a review whose request is null', JSON.stringify({ ...REVIEW, request: null })],
  ['a review whose request is text', JSON.stringify({ ...REVIEW, request: 'x' })],
  ['a request without uid', JSON.stringify({ ...REVIEW, request: { operation: 'CREATE' } })],
  ['a request with an unknown operation', JSON.stringify({ ...REVIEW, request: { uid: 'u', operation: 'PATCH' } })],
] as const) {
  test(`the webhook refuses ${what} with a reason, and without a server error`, (t) => {
    t.match(readReview(text), { ok: false, reason: /./ });
    t.end();
  });
}

test('null or mistyped parts of a request count as missing', (t) => {
  const request = { uid: 'u', operation: 'CREATE', resource: null, object: 7, oldObject: null, userInfo: null };
  t.match(readReview(JSON.stringify({ ...REVIEW, request })), {
    ok: true,
    review: { apiGroup: '', resource: '', object: null, oldObject: null, user: '' },
  });
  t.end();
});
