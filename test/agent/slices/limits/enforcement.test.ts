import { test } from 'tap';
import { readEnforcement } from '../../../../src/agent/slices/limits/live-limits.js';

const KEY = 'tencent.com/vcuda-enforcement';
const read = (text: string, allowed: boolean) => readEnforcement(new Map([[KEY, text]]), 'main', allowed);

test('limits are enforced unless the pod requests otherwise and the node allows it', (t) => {
  const enforced = { unenforced: false, problem: null };
  t.same(readEnforcement(new Map(), 'main', true), enforced);
  t.same(read('limits', true), enforced);
  t.same(read('none', true), { unenforced: true, problem: null });
  t.same(read('side=none', true), enforced);
  t.same(read('main=none,side=limits', true), { unenforced: true, problem: null });
  t.end();
});

test('an unenforced slice on a node without the option, and an unknown word, are refused with the reason', (t) => {
  t.same(read('none', false), {
    unenforced: false,
    problem: `${KEY}: this node has no unenforced slices (--allow-unenforced); the limits are enforced`,
  });
  t.same(read('off', true), {
    unenforced: false,
    problem: `${KEY}: "off" is not limits or none; the limits are enforced`,
  });
  t.end();
});
