import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { kubeletIsRunning, TestCluster, whyNoCluster } from './cluster.js';

/**
 * Runs every *.e2e.js, or those that begin with one of the words given, on one real cluster, one after another. `--seconds`: how
 * long faults are made. Without the means for a cluster it says so and succeeds.
 */
async function main(): Promise<number> {
  const cluster = new TestCluster();
  const reason =
    whyNoCluster() ??
    (kubeletIsRunning() && !cluster.processes.isAlive('kubelet') ? 'another kubelet runs on this machine' : null);
  if (reason !== null) {
    console.log(`end-to-end tests skipped: ${reason}`);
    return 0;
  }
  const directory = fileURLToPath(new URL('.', import.meta.url));
  const { values, positionals: wanted } = parseArgs({
    allowPositionals: true,
    options: { seconds: { type: 'string' } },
  });
  const duration = values.seconds === undefined ? {} : { GPU_MANAGER_E2E_SECONDS: values.seconds };
  const files = readdirSync(directory).filter(
    (name) => name.endsWith('.e2e.js') && (wanted.length === 0 || wanted.some((word) => name.startsWith(word))),
  );
  console.log('starting the cluster');
  await cluster.start();
  let failed = 0;
  try {
    for (const file of files) {
      console.log(`# ${file}`);
      const { status } = spawnSync(process.execPath, [join(directory, file)], {
        stdio: 'inherit',
        env: { ...process.env, ...duration, TAP_TIMEOUT: String(900 + Number(values.seconds ?? 0)) },
      });
      if (status !== 0) failed += 1;
      // Whatever a file leaves, also when it fails, the next one finds an empty cluster.
      await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0', '--wait=true', '--timeout=240s');
    }
  } finally {
    await cluster.stop();
  }
  console.log(`# end-to-end: ${files.length - failed} of ${files.length} files passed`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
