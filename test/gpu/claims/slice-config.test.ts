import { test } from 'tap';
import { readSliceConfig, settingsOf } from '../../../src/gpu/claims/slice-config.js';
import type { AllocationConfig } from '../../../src/gpu/claims/resource-claim.js';

const config = (fields: object): object => ({ apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', ...fields });

const entry = (
  parameters: unknown,
  source: AllocationConfig['source'] = 'FromClaim',
  requests: readonly string[] = [],
): AllocationConfig => ({
  source,
  requests,
  driver: 'gpu.tencent.com',
  parameters,
});

for (const [what, parameters, reason] of [
  ['a number instead of an object', 7, /expected an object of kind SliceConfig/],
  [
    'another version',
    { apiVersion: 'v2', kind: 'SliceConfig' },
    /apiVersion: expected gpu.tencent.com\/v1, found "v2"/,
  ],
  ['another kind', { apiVersion: 'gpu.tencent.com/v1', kind: 'GpuConfig' }, /kind: expected SliceConfig/],
  [
    'an unknown field',
    config({ sofLimit: 3 }),
    /sofLimit: no such field; there are softLimit, maxSoftLimit, priority, maxPriority/,
  ],
  ['a property name of Object.prototype', config({ constructor: 3 }), /constructor: no such field/],
  ['a limit above 100', config({ softLimit: 120 }), /softLimit: 120 is not a whole number from 1 to 100/],
  ['a fractional limit', config({ softLimit: 1.5 }), /softLimit: 1.5 is not a whole number/],
  ['a text as limit', config({ softLimit: '60' }), /softLimit: "60" is not a whole number/],
  ['a field that only a class may set', config({ maxSoftLimit: 60 }), /maxSoftLimit may be set by a DeviceClass only/],
] as const) {
  test(`the agent refuses parameters with ${what} and states the reason`, (t) => {
    t.match(readSliceConfig(parameters, 'FromClaim'), { ok: false, reason });
    t.end();
  });
}

test('the parameters of the claim apply after those of the class in any order, and stay within them', (t) => {
  const ofClass = entry(config({ softLimit: 40, maxSoftLimit: 80 }), 'FromClass');
  t.same(settingsOf([ofClass], 'gpu'), { ok: true, settings: { softLimit: 40 } });
  t.same(settingsOf([entry(config({ softLimit: 60 })), ofClass], 'gpu'), { ok: true, settings: { softLimit: 60 } });
  t.match(settingsOf([ofClass, entry(config({ softLimit: 90 }))], 'gpu'), {
    ok: false,
    reason: 'config 2: softLimit: 90 is more than the class allows, 80',
  });
  t.end();
});

test('the agent ignores parameters of other drivers and other requests', (t) => {
  const others = [
    { ...entry('nonsense'), driver: 'gpu.nvidia.com' },
    entry(config({ softLimit: 60 }), 'FromClaim', ['other']),
  ];
  t.same(settingsOf(others, 'gpu'), { ok: true, settings: { softLimit: null } });
  t.same(settingsOf([entry(config({ softLimit: 60 }), 'FromClaim', ['gpu'])], 'gpu/linked'), {
    ok: true,
    settings: { softLimit: 60 },
  });
  t.end();
});

test('a claim chooses a priority up to the maximum of its class, which also applies without a choice', (t) => {
  const ofClass = (fields: object) => entry(config(fields), 'FromClass');
  const priorityOf = (...entries: Parameters<typeof settingsOf>[0]) => {
    const read = settingsOf(entries, 'gpu');
    return read.ok ? read.settings.priority : read.reason;
  };
  t.equal(priorityOf(), undefined);
  t.equal(priorityOf(entry(config({ priority: 'high' }))), 'high');
  t.equal(priorityOf(ofClass({ priority: 'low' }), entry(config({ priority: 'normal' }))), 'normal');
  t.equal(priorityOf(ofClass({ maxPriority: 'normal' }), entry(config({ priority: 'low' }))), 'low');
  t.equal(priorityOf(ofClass({ maxPriority: 'normal' })), 'normal');
  t.equal(priorityOf(ofClass({ maxPriority: 'high' })), undefined);
  t.equal(
    priorityOf(ofClass({ maxPriority: 'normal' }), entry(config({ priority: 'high' }))),
    'config 2: priority: high is higher than the class allows, normal',
  );
  t.match(priorityOf(entry(config({ priority: 'urgent' }))), /priority: "urgent" is not one of high, normal, low/);
  t.match(priorityOf(entry(config({ maxPriority: 'low' }))), /maxPriority may be set by a DeviceClass only/);
  t.end();
});
