import { fileURLToPath } from 'node:url';
import tap from 'tap';
import { TestCluster } from './cluster.js';

/**
 * The contracts of the doubles of the tests, on the real thing: what the programmable API server answers to the client,
 * what a store of the quota engine keeps there, and what the emulated kubelet asks of device plugins.
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
