import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { kubeletIsRunning, TestCluster, whyNoCluster } from './cluster.js';
import { timeLimit } from '../harness/time-factor.js';
import { builtVersions, chosenVersion, KubernetesVersion, VERSION_VARIABLE } from './kubernetes-version.js';

const command = new Command('npm run test:e2e --')
  .description('Runs each end-to-end file on an empty real cluster. Without the means for one it says so and succeeds.')
  .argument('[files...]', 'how the names of files of test/e2e begin (default: all)')
  .option('--kubernetes <version>', 'a version with a build (default: the newest)')
  .option('--all-versions', 'all versions with a build, one after another')
  .option('--seconds <count>', 'duration of the faults', Number, 0)
  .parse();

async function main(wanted: readonly string[]): Promise<number> {
  const { kubernetes, allVersions, seconds } = command.opts<{
    kubernetes?: string;
    allVersions?: boolean;
    seconds: number;
  }>();
  const versions = allVersions ? builtVersions() : [];
  const find = kubernetes === undefined ? chosenVersion : () => new KubernetesVersion(kubernetes);
  const reason = whyNoCluster(find) ?? otherKubelet(find());
  if (reason !== null) {
    console.log(`end-to-end tests skipped: ${reason}`);
    return kubernetes === undefined ? 0 : 1;
  }
  const files = filesOf(wanted);
  if (files.length === 0) {
    console.error(`no end-to-end file begins with ${wanted.join(' or ')}`);
    return 2;
  }
  const failed: string[] = [];
  for (const version of versions.length > 0 ? versions : [find()])
    for (const file of files) if (!(await passes(version, file, seconds))) failed.push(`${file} on ${version.name}`);
  for (const line of failed) console.log(`# failed: ${line}`);
  const total = files.length * Math.max(1, versions.length);
  console.log(`# end-to-end: ${total - failed.length} of ${total} files passed`);
  return failed.length === 0 ? 0 : 1;
}

function otherKubelet(version: KubernetesVersion): string | null {
  const ours = new TestCluster(version).processes.isAlive('kubelet');
  return kubeletIsRunning() && !ours ? 'another kubelet runs on this machine' : null;
}

function filesOf(words: readonly string[]): readonly string[] {
  return readdirSync(fileURLToPath(new URL('.', import.meta.url))).filter(
    (name) => name.endsWith('.e2e.js') && (words.length === 0 || words.some((word) => name.startsWith(word))),
  );
}

/** Runs one file on an empty cluster; leftovers of the stopped cluster count as a failure. */
async function passes(version: KubernetesVersion, file: string, seconds: number): Promise<boolean> {
  console.log(`# ${file} on Kubernetes ${version.name}`);
  const cluster = new TestCluster(version);
  try {
    await cluster.start();
    const { status } = spawnSync(process.execPath, [fileURLToPath(new URL(file, import.meta.url))], {
      stdio: 'inherit',
      env: {
        ...version.environment,
        [VERSION_VARIABLE]: version.name,
        ...(seconds === 0 ? {} : { GPU_MANAGER_E2E_SECONDS: String(seconds) }),
        TAP_TIMEOUT: String(timeLimit(900 + seconds)),
      },
    });
    await cluster.stop();
    const left = cluster.leftovers.list();
    for (const line of left) console.log(`# left behind: ${line}`);
    return status === 0 && left.length === 0;
  } catch (error) {
    console.log(`# ${(error as Error).message}`);
    return false;
  } finally {
    await cluster.stop();
  }
}

process.exitCode = await main(command.args);
