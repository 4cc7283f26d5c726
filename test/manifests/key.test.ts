import { test } from 'tap';
import { keyProblem, resourceProblem, unitOfKey } from '../../src/manifests/key.js';

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
    'gpus',
    'requests.gpus.A100',
    'cash/gpus',
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
  t.same(unitOfKey('cash/gpus.A100'), { decimals: 3, binary: false, pointed: true });
  t.same(unitOfKey('cash/gpu.cards'), { decimals: 3, binary: false, pointed: true });
  t.same(unitOfKey('requests.memory'), { decimals: 0, binary: true });
  t.same(unitOfKey('requests.nvidia.com/gpu'), { decimals: 0, binary: false });
  t.same(unitOfKey('requests.cpu.com/cpu'), { decimals: 0, binary: false });
  t.end();
});
