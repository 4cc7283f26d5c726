import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { DEFAULT_ARBITRATOR_POLICY } from '../../../src/quota/index.js';
import { readPolicy } from '../../../src/quota-controller/policy/policy-object.js';
import { kubeconfig } from '../../harness/api-server/kubeconfig.js';
import { eventually } from '../../harness/eventually.js';
import { MAIN } from '../../harness/programs.js';
import { scratchDirectory } from '../../scratch.js';
import { QuotaCluster } from '../cluster.js';

const FAST = 'fast.storageclass.storage.k8s.io/requests.storage';

test('Consumers hold storage: volume claims count for their namespaces, and quota tree shows them', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.seed('quotapolicies', {
    metadata: { name: 'default', generation: 1 },
    spec: { storageCapacity: { [FAST]: '10Gi' } },
  });
  for (const name of ['shop', 'web']) on.server.seed('namespaces', { metadata: { name } });
  on.server.seed('consumers', { metadata: { name: 'area', generation: 1 }, spec: {} });
  on.server.seed('consumers', {
    metadata: { name: 'shop', generation: 1 },
    spec: { parent: 'area', hard: { storage: '20Gi' }, reserved: { storage: '5Gi' } },
  });
  const claims = (namespace: string, name: string, storage: string, phase: string, storageClassName = 'fast'): void =>
    void on.server.seed('persistentvolumeclaims', {
      metadata: { name, namespace },
      spec: { storageClassName, resources: { requests: { storage } } },
      status: { phase },
    });
  claims('shop', 'data', '8Gi', 'Bound');
  claims('shop', 'more', '16Gi', 'Pending', 'slow');
  claims('web', 'logs', '12Gi', 'Bound');
  await on.join({ arbitrator: { mode: 'on', policy: DEFAULT_ARBITRATOR_POLICY, periodMs: 20 } });
  const statusOf = (name: string): unknown => on.server.read('allocations', '', name)?.status;
  await eventually(() => statusOf('shop') !== undefined && statusOf('web') !== undefined, 'the Allocations');
  t.match(statusOf('shop'), {
    allocated: { storage: '8Gi', persistentvolumeclaims: '1', [FAST]: '8Gi' },
    pending: { storage: '16Gi' },
    deserved: { storage: '20Gi' },
    overused: [FAST],
  });
  t.match(statusOf('web'), { allocated: { [FAST]: '12Gi' }, overused: [FAST] });
  const directory = await scratchDirectory(t);
  await writeFile(join(directory, 'kubeconfig'), kubeconfig(on.server, {}));
  const out = await new Promise<string>((resolve, reject) => {
    let text = '';
    const child = spawn(process.execPath, [MAIN, 'quota', 'tree', '--consumers', '--kubeconfig', 'kubeconfig'], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.once('error', reject);
    child.once('close', () => resolve(text));
  });
  t.match(out, /^CONSUMER +RESOURCE +HARD +RESERVED +DESERVED +ALLOCATED +PENDING\narea/);
  t.match(out, /\n {2}shop +fast\.storageclass[^]*\n +storage +20Gi +5Gi +20Gi +8Gi +16Gi\n/);
  t.match(out, /\nweb +fast\.storageclass/);
});

test('a policy whose storage cannot be read says so', (t) => {
  const read = readPolicy({ metadata: { name: 'default' }, spec: { storageCapacity: { cpu: 1, storage: 'much' } } });
  t.match(read?.problems, [/spec\.storageCapacity: storage/, /"cpu" is no storage/]);
  t.equal(read?.policy.storageCapacity.size, 0);
  t.end();
});
