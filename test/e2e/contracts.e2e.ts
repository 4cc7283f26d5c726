import { fileURLToPath } from 'node:url';
import tap from 'tap';
import { TestCluster } from './cluster.js';

/**
 * The contracts that the programmable API server of the tests keeps, on the real one: what both answer to the client,
 * and what a store of the quota engine keeps there.
 */
const CONTRACTS = ['kube/contract.test.js', 'quota-controller/kube-store.test.js'];

const cluster = new TestCluster();
const minor = cluster.version.name.split('.')[1];

tap.setTimeout(900_000);
for (const file of CONTRACTS)
  await tap.spawn(
    process.execPath,
    [fileURLToPath(new URL(`../${file}`, import.meta.url))],
    {
      env: { ...process.env, KUBECONFIG_E2E: cluster.kubeconfig, KUBECONFIG_E2E_MINOR: minor, TAP_TIMEOUT: '600' },
      timeout: 600_000,
    },
    file,
  );
