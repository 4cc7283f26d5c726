import { test } from 'tap';
import * as annotations from '../../src/gpu/annotations.js';
import { misspeltKey } from '../../src/kube/misspelt-key.js';

test('an almost right key is refused with the right one', (t) => {
  for (const [wrong, right] of [
    ['use-gpu-modle', 'use-gpu-model'],
    ['use-gpu-models', 'use-gpu-model'],
    ['vcuda-core-limits', 'vcuda-core-limit'],
    ['vcuda_priority', 'vcuda-priority'],
    ['same-Numa', 'same-numa'],
  ])
    t.equal(
      misspeltKey({ [`tencent.com/${wrong}`]: 'x' }),
      `annotation tencent.com/${wrong} has no meaning; write tencent.com/${right}`,
    );
  t.end();
});

test('the keys of this project, and those of other programs, are no errors', (t) => {
  const own = Object.values(annotations).flatMap((value) => (typeof value === 'string' ? [value] : []));
  const keys = [
    ...own,
    ...[annotations.predicateGpuIndexKey(0), annotations.predicateGpuUuidKey(0), annotations.initGpuIndexKey(0)],
    ...['tencent.com/vcuda-core-resize', 'tencent.com/vcuda-resize-status', 'tencent.com/vcuda-core'],
    ...[
      'tencent.com/networks',
      'tke.cloud.tencent.com/use-gpu-modle',
      'use-gpu-modle',
      `tencent.com/${'x'.repeat(1e5)}`,
    ],
  ];
  t.ok(own.length > 15);
  for (const key of keys) t.equal(misspeltKey({ [key]: 'x' }), null, key.slice(0, 80));
  t.end();
});
