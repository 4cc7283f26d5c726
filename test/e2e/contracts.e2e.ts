import { fileURLToPath } from 'node:url';
import tap from 'tap';
import { TestCluster } from './cluster.js';

/**
 * Runs the contracts of the test doubles against the real components: the answers of the programmable API server to the
 * client, the records of a store of the quota engine in it, and the calls of the emulated kubelet to device plugins.
 */
const CONTRACTS = [
  'kube/contract.test.js',
  'quota-controller/kube-store.test.js',
  'simulation/kubelet/contract.test.js',
];

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
