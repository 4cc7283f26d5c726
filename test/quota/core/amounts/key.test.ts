import fc from 'fast-check';
import { test } from 'tap';
import { keyProblem, resourceProblem, unitOfKey } from '../../../../src/quota/core/amounts/key.js';
import {
  DEFAULT_FAMILIES,
  expand,
  familyOf,
  typeChain,
  typeProblem,
} from '../../../../src/quota/core/amounts/type-family.js';

test('keys that a workload can charge are accepted', (t) => {
  const known = [
    'pods',
    'cpu',
    'requests.cpu',
    'limits.cpu',
    'limits.cpu.A4',
    'limits.cpu.A4.big',
    'limits.memory',
    'requests.ephemeral-storage',
    'hugepages-2Mi',
    'requests.hugepages-1Gi',
    'nvidia.com/gpu',
    'requests.nvidia.com/gpu',
    'requests.nvidia.com/gpu.A30',
    'limits.nvidia.com/gpumem',
    'requests.tencent.com/vcuda-core.T4',
    'count/deployments.apps',
    'count/pods',
    'gpu.cards',
    'gpu.cards.T4',
    'requests.gpu.memory',
    'cash/limits.cpu',
    'cash/requests.nvidia.com/gpu.A100',
    'cash/pods',
    'smarter-devices/fuse',
  ];
  for (const key of known) t.equal(keyProblem(key), null, key);
  t.end();
});

test('keys that no workload can charge are refused', (t) => {
  const unknown = [
    '',
    'cpus',
    'limit.cpu',
    'limits.cpuset',
    'limits.',
    'requests',
    'cash/',
    'cash/cash/limits.cpu',
    'cash/count/pods',
    'count/',
    'count/Deployments',
    'cash/services',
    'requests.services',
    'limits.cpu ',
    'limits cpu',
    'limits.cpu\n',
    '__proto__',
    'constructor',
    'requests.storage.',
    'nvidia.com/',
    '/gpu',
    'a'.repeat(400),
    'limits.gpu',
    'hugepages-x',
  ];
  for (const key of unknown) t.not(keyProblem(key), null, JSON.stringify(key));
  t.end();
});

test('a quota key is not a resource that a workload can request', (t) => {
  for (const resource of ['requests.cpu', 'limits.cpu', 'count/pods', 'cash/limits.cpu', '', ' ', 'a b', '__proto__'])
    t.not(resourceProblem(resource), null, resource);
  for (const resource of ['cpu', 'nvidia.com/gpu', 'gpu.cards', 'nvidia.com/gpu.shared'])
    t.equal(resourceProblem(resource), null, resource);
  t.end();
});

test('cores and GPUs are counted in thousandths, memory in bytes, other resources in units', (t) => {
  t.same(unitOfKey('limits.cpu.A4'), { decimals: 3, binary: false });
  t.same(unitOfKey('cash/gpu.cards'), { decimals: 3, binary: false });
  t.same(unitOfKey('requests.memory'), { decimals: 0, binary: true });
  t.same(unitOfKey('requests.nvidia.com/gpu'), { decimals: 0, binary: false });
  t.same(unitOfKey('requests.cpu.com/cpu'), { decimals: 0, binary: false });
  t.end();
});

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
      fc.constantFrom('cpu', 'memory', 'gpu.cards', 'nvidia.com/gpu', 'nvidia.com/gpu.shared', 'a-b.c/d_e'),
      fc.constantFrom('request' as const, 'limit' as const, 'both' as const),
      type,
      (resource, side, name) => expand(resource, side, name).every((key) => keyProblem(key) === null),
    ),
  );
  t.equal(typeProblem('A4.big'), null);
  for (const wrong of ['-a', 'a-', 'a b', 'a'.repeat(64), 'é', 'a/b']) t.not(typeProblem(wrong), null, wrong);
  t.end();
});
