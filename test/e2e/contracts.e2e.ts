import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { TestCluster } from './cluster.js';

/**
 * Runs the contracts of the test doubles against the real components: the answers of the programmable API server to the
 * client, the records of a store of the quota engine in it, and the calls of the emulated kubelet to device plugins.
 */
const CONTRACTS = [
  'kube/contract.test.js',
  'quota-controller/store/kube-store.test.js',
  'simulation/kubelet/contract.test.js',
];
/** Failed assertions print the objects that they compare; a contract with more output would be killed. */
const MAX_OUTPUT_BYTES = 64 * 2 ** 20;

const cluster = new TestCluster();
const minor = cluster.version.name.split('.')[1];

for (const file of CONTRACTS)
  test(file, { timeout: 650_000 }, (t) => {
    const { status, signal, stdout, stderr } = spawnSync(
      process.execPath,
      [fileURLToPath(new URL(`../${file}`, import.meta.url))],
      {
        encoding: 'utf8',
        maxBuffer: MAX_OUTPUT_BYTES,
        env: { ...process.env, KUBECONFIG_E2E: cluster.kubeconfig, KUBECONFIG_E2E_MINOR: minor, TAP_TIMEOUT: '600' },
        timeout: 600_000,
      },
    );
    const results = [...stdout.matchAll(/^(not )?ok \d+ - (.*?)(?: # (?:SKIP ?(.*)|time=.*))?$/gmu)];
    for (const [, not, name = '', skip] of results)
      if (skip !== undefined) t.pass(name, { skip });
      else t.ok(not === undefined, name);
    t.ok(status === 0 && results.length > 0, `${file} passes`, { status, signal, stdout, stderr });
    t.end();
  });
