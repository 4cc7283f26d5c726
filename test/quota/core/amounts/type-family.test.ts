import fc from 'fast-check';
import { test } from 'tap';
import { keyProblem } from '../../../../src/manifests/key.js';
import {
  DEFAULT_FAMILIES,
  expand,
  familyOf,
  typeChain,
  typeProblem,
} from '../../../../src/quota/core/amounts/type-family.js';

test('a type counts as every type above it', (t) => {
  t.same(typeChain('cpu', ''), ['cpu']);
  t.same(typeChain('cpu', 'A4.big.fast'), ['cpu', 'cpu.A4', 'cpu.A4.big', 'cpu.A4.big.fast']);
  t.same(expand('cpu', 'limit', 'A4'), ['limits.cpu', 'limits.cpu.A4']);
  t.same(expand('cpu', 'request', 'A4'), ['cpu', 'requests.cpu', 'cpu.A4', 'requests.cpu.A4']);
  t.same(expand('nvidia.com/gpu', 'both', 'A30'), [
    'nvidia.com/gpu',
    'requests.nvidia.com/gpu',
    'limits.nvidia.com/gpu',
    'nvidia.com/gpu.A30',
    'requests.nvidia.com/gpu.A30',
    'limits.nvidia.com/gpu.A30',
  ]);
  t.end();
});

test('a type label of one family does not apply to another', (t) => {
  t.equal(familyOf(DEFAULT_FAMILIES, 'cpu'), 'cpu');
  t.equal(familyOf(DEFAULT_FAMILIES, 'nvidia.com/mig-1g.5gb'), 'gpu');
  t.equal(familyOf(DEFAULT_FAMILIES, 'nvidia.com/gpu.shared'), null);
  t.equal(familyOf(DEFAULT_FAMILIES, 'ephemeral-storage'), null);
  t.end();
});

test('a group can limit every key to which a valid request is expanded', (t) => {
  const part = fc.stringMatching(/^[A-Za-z0-9]{1,8}$/);
  const type = fc.array(part, { maxLength: 3 }).map((parts) => parts.join('.'));
  fc.assert(
    fc.property(
      fc.constantFrom('cpu', 'memory', 'gpu.cards', 'gpus', 'nvidia.com/gpu', 'nvidia.com/gpu.shared', 'a-b.c/d_e'),
      fc.constantFrom('request' as const, 'limit' as const, 'both' as const),
      type,
      (resource, side, name) => expand(resource, side, name).every((key) => keyProblem(key) === null),
    ),
  );
  t.equal(typeProblem('A4.big'), null);
  for (const wrong of ['-a', 'a-', 'a b', 'a'.repeat(64), 'é', 'a/b']) t.not(typeProblem(wrong), null, wrong);
  t.end();
});
