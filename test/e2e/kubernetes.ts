import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { kubeletIsRunning, TestCluster, whyNoCluster } from './cluster.js';
import { builtVersions, chosenVersion, KubernetesVersion } from './kubernetes-version.js';

const BUILD = fileURLToPath(new URL('../../../scripts/build-kubernetes', import.meta.url));
const USAGE = `usage: npm run kubernetes -- COMMAND [VERSION]
  build [VERSION]   compile this version, such as 1.36 or 1.36.3; default: the newest release
  list              versions that are built
  up [VERSION]      start a cluster of one node; default: the newest that is built
  down              stop it and remove its state`;

/**
 * `npm run kubernetes`: builds the Kubernetes of the end-to-end tests, and runs a cluster to experiment with. Returns
 * the exit code.
 */
async function main([command, version, ...more]: readonly string[]): Promise<number> {
  if (more.length > 0) return usage(`unexpected argument ${more.join(' ')}`);
  switch (command) {
    case 'build':
      return spawnSync(BUILD, version === undefined ? [] : [version], { stdio: 'inherit' }).status ?? 1;
    case 'list':
      for (const { name, directory } of builtVersions()) console.log(`${name}\t${directory}`);
      return 0;
    case 'up':
      return up(version === undefined ? chosenVersion : () => new KubernetesVersion(version));
    case 'down': {
      const cluster = new TestCluster();
      await cluster.stop();
      const left = cluster.leftovers.list();
      for (const line of left) console.error(`left behind: ${line}`);
      cluster.leftovers.removeState();
      return left.length === 0 ? 0 : 1;
    }
    default:
      return usage(command === undefined ? 'no command given' : `unknown command ${command}`);
  }
}

async function up(find: () => KubernetesVersion): Promise<number> {
  const reason = whyNoCluster(find);
  if (reason !== null) {
    console.error(reason);
    return 1;
  }
  const cluster = new TestCluster(find());
  if (kubeletIsRunning() && !cluster.processes.isAlive('kubelet')) {
    console.error('another kubelet runs on this machine; stop it first');
    return 1;
  }
  await cluster.start();
  console.log(`Kubernetes ${cluster.version.name} is ready: export KUBECONFIG=${cluster.kubeconfig}`);
  return 0;
}

function usage(problem: string): number {
  console.error(`${problem}\n${USAGE}`);
  return 2;
}

process.exitCode = await main(process.argv.slice(2));
