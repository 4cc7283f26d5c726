import { test } from 'tap';
import { reviewConfiguration } from '../../src/claim-webhook/configuration-review.js';
import type { Review } from '../../src/kube/admission/review.js';

const REVIEW: Review = {
  uid: 'u',
  operation: 'CREATE',
  apiGroup: 'resource.k8s.io',
  resource: 'resourceclaims',
  subresource: '',
  namespace: 'team',
  name: 'claim',
  dryRun: false,
  object: null,
  oldObject: null,
  user: 'tester',
};

const config = (fields: object, driver = 'gpu.tencent.com') => [
  { opaque: { driver, parameters: { apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', ...fields } } },
];
const claim = (fields: object, driver?: string) => ({ spec: { devices: { config: config(fields, driver) } } });
const template = (fields: object) => ({ spec: { spec: { devices: { config: config(fields) } } } });

test('wrong parameters are refused where they are written, with the place and what was expected', (t) => {
  t.match(reviewConfiguration({ ...REVIEW, object: claim({ softLimit: 120 }) }), {
    allowed: false,
    code: 422,
    message:
      'InvalidParameters: spec.devices.config[0].opaque.parameters: softLimit: 120 is not a whole number from 1 to 100',
  });
  t.match(reviewConfiguration({ ...REVIEW, resource: 'resourceclaimtemplates', object: template({ speed: 1 }) }), {
    allowed: false,
    message: /spec\.spec\.devices\.config\[0\]\.opaque\.parameters: speed: no such field/,
  });
  t.end();
});

test('a field of a DeviceClass is refused in a claim and accepted in the class', (t) => {
  t.match(reviewConfiguration({ ...REVIEW, object: claim({ maxSoftLimit: 50 }) }), { allowed: false });
  const object = { spec: { config: config({ maxSoftLimit: 50 }) } };
  t.same(reviewConfiguration({ ...REVIEW, resource: 'deviceclasses', object }), { allowed: true });
  t.end();
});

test('right parameters, those of other drivers and deletions pass', (t) => {
  for (const object of [claim({ softLimit: 60, priority: 'low' }), claim({ anything: 1 }, 'gpu.nvidia.com'), null])
    t.same(reviewConfiguration({ ...REVIEW, object }), { allowed: true });
  t.end();
});

test('an object that was wrong before can be changed elsewhere, so that it can be deleted', (t) => {
  const object = claim({ softLimit: 120 });
  t.same(reviewConfiguration({ ...REVIEW, operation: 'UPDATE', object, oldObject: object }), { allowed: true });
  t.end();
});
