import tap from 'tap';
import type { KubeApi } from '../../src/kube/client.js';
import { LEDGERS_PATH, itemPath } from '../../src/kube/quota/names.js';
import { ledgerObject } from '../../src/quota-controller/store/ledger.js';
import { RecordLog } from '../../src/quota-controller/store/record-log.js';
import { installDefinitions } from '../quota-controller/setting.js';
import type { TestCluster } from './cluster.js';
import { until } from '../harness/eventually.js';

const PROBE = 'can-this-be-written';

/**
 * Defines the resources of the quota engine and writes one object of them. Kubernetes 1.20 from Debian's compiler
 * crashes there (its reflect2 1.0.1 reads maps as Go did before 1.18): the file then ends here, skipped, with the
 * server started again for the next file.
 */
export async function customResourcesOrSkip(cluster: TestCluster, api: KubeApi): Promise<void> {
  await installDefinitions(api);
  const records = RecordLog.empty().with(
    new Map([['group', { kind: 'group', key: PROBE, group: PROBE, value: null }]]),
  );
  const page = {
    group: PROBE,
    parent: '',
    token: '',
    head: { revision: 0, now: 0, lives: 0 },
    children: new Map([['child', 'token']]),
    records,
  };
  const answer = await api.request({ method: 'POST', path: LEDGERS_PATH, body: ledgerObject(PROBE, null, page, null) });
  if (answer.ok) {
    await api.request({ method: 'DELETE', path: itemPath(LEDGERS_PATH, PROBE) });
    return;
  }
  if (cluster.processes.isAlive('apiserver'))
    throw new Error(`a custom resource can not be written: ${answer.message}`);
  await cluster.processes.restart('apiserver');
  await until('the API server', async () => (await cluster.kubectl('get', '--raw', '/readyz')) === 'ok');
  tap.plan(0, 'this kube-apiserver crashes at the first custom resource that is written: build it with reflect2 1.0.2');
  process.exit(0);
}
