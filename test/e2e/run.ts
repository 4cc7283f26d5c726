import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { kubeletIsRunning, TestCluster, whyNoCluster } from './cluster.js';
import { ClusterContents } from './cluster-contents.js';
import { runOnOwnMachine, whyNoOwnMachine } from './own-machine.js';
import { timeLimit } from '../harness/time-factor.js';
import { builtVersions, chosenVersion, KubernetesVersion, VERSION_VARIABLE } from './kubernetes-version.js';

const command = new Command('npm run test:e2e --')
  .description(
    'Runs each end-to-end file on an empty real cluster: a new one, or, for files that change only objects of the API ' +
      'server, one that was emptied again. Without the means for one it says so and succeeds.',
  )
  .argument('[files...]', 'how the names of files of test/e2e begin (default: all)')
  .option('--kubernetes <version>', 'a version with a build (default: the newest)')
  .option('--all-versions', 'all versions with a build, one after another')
  .option('--seconds <count>', 'duration of the faults', Number, 0)
  .option('--machines <count>', 'clusters at the same time, each as on a machine of its own (default: two)', Number, 2)
  .option('--here', 'as programs of this machine, one file after another')
  .parse();

/**
 * These change only objects of the API server, start programs that end with the file, and restart no part of the
 * cluster.
 */
const SHARING = new Set(
  ['arbitrator', 'contracts', 'definitions', 'manifests', 'quota', 'running-pods', 'walk'].map(
    (name) => `${name}.e2e.js`,
  ),
);

interface Options {
  readonly kubernetes?: string;
  readonly allVersions?: boolean;
  readonly seconds: number;
  readonly machines: number;
  readonly here?: boolean;
}

async function main(wanted: readonly string[]): Promise<number> {
  const { kubernetes, allVersions, seconds, machines, here } = command.opts<Options>();
  const versions = allVersions === true ? builtVersions() : [];
  const find = kubernetes === undefined ? chosenVersion : () => new KubernetesVersion(kubernetes);
  const whyHere = here === true ? null : whyNoOwnMachine();
  const onMachines = here !== true && whyHere === null;
  if (whyHere !== null) console.log(`# one file after another, without a machine of its own: ${whyHere}`);
  const reason = whyNoCluster(find) ?? (onMachines ? null : otherKubelet(find()));
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
  for (const version of versions.length > 0 ? versions : [find()]) {
    const names = onMachines
      ? await failedOnMachines(version, files, seconds, machines)
      : await failedFiles(version, files, seconds);
    for (const file of names) failed.push(`${file} on ${version.name}`);
  }
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

/** Runs these files on several machines at once; those that share a cluster stay together, and begin. */
async function failedOnMachines(
  version: KubernetesVersion,
  files: readonly string[],
  seconds: number,
  machines: number,
): Promise<string[]> {
  const sharing = files.filter((file) => SHARING.has(file));
  const groups = [
    ...(sharing.length > 0 ? [sharing] : []),
    ...files.filter((file) => !SHARING.has(file)).map((file) => [file]),
  ];
  const failed: string[] = [];
  const program = fileURLToPath(import.meta.url);
  // What several machines print is shown file by file.
  const shown = groups.length === 1;
  const work = async (): Promise<void> => {
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      const options = ['--here', '--kubernetes', version.name, '--seconds', String(seconds)];
      const { status, output } = await runOnOwnMachine([process.execPath, program, ...options, ...group], shown);
      if (!shown) console.log(output.replace(/^# (?:failed|end-to-end): .*\n/gm, '').trimEnd());
      const named = group.filter((file) => output.includes(`# failed: ${file} on ${version.name}\n`));
      failed.push(...(status !== 0 && named.length === 0 ? group : named));
    }
  };
  await Promise.all(Array.from({ length: machines }, work));
  return failed;
}

/** Runs these files, those that share a cluster one after another at the beginning. */
async function failedFiles(version: KubernetesVersion, files: readonly string[], seconds: number): Promise<string[]> {
  const failed: string[] = [];
  const cluster = new TestCluster(version);
  const sharing = files.filter((file) => SHARING.has(file));
  const ordered = [...sharing, ...files.filter((file) => !SHARING.has(file))];
  let contents: ClusterContents | null = null;
  for (const file of ordered) {
    console.log(`# ${file} on Kubernetes ${version.name}`);
    const began = Date.now();
    let started = began;
    let passed = false;
    try {
      if (contents === null) {
        await cluster.start();
        if (SHARING.has(file)) contents = await ClusterContents.of(cluster);
      }
      started = Date.now();
      passed = runFile(version, file, seconds);
    } catch (error) {
      console.log(`# ${(error as Error).message}`);
    }
    const ended = Date.now();
    // The next file needs a cluster of its own after a failure, too: nobody knows what it left.
    const next = ordered[ordered.indexOf(file) + 1] ?? '';
    const goesOn = contents !== null && passed && SHARING.has(next) && (await isRestored(contents));
    if (!goesOn) {
      contents?.close();
      contents = null;
      passed = (await stopsClean(cluster)) && passed;
    }
    if (!passed) failed.push(file);
    const ofCluster = started - began + Date.now() - ended;
    console.log(`# ${file}: ${secondsOf(ended - started)} s, and ${secondsOf(ofCluster)} s for its cluster`);
  }
  return failed;
}

const secondsOf = (ms: number): string => (ms / 1000).toFixed(0);

/** Whether the cluster is empty again. */
async function isRestored(contents: ClusterContents): Promise<boolean> {
  try {
    await contents.restore();
    return true;
  } catch (error) {
    console.log(`# the next file gets a new cluster: ${(error as Error).message}`);
    return false;
  }
}

function runFile(version: KubernetesVersion, file: string, seconds: number): boolean {
  const { status } = spawnSync(process.execPath, [fileURLToPath(new URL(file, import.meta.url))], {
    stdio: 'inherit',
    env: {
      ...version.environment,
      [VERSION_VARIABLE]: version.name,
      ...(seconds === 0 ? {} : { GPU_MANAGER_E2E_SECONDS: String(seconds) }),
      TAP_TIMEOUT: String(timeLimit(900 + seconds)),
    },
  });
  return status === 0;
}

/** Stops the cluster; leftovers of the stopped cluster count as a failure. */
async function stopsClean(cluster: TestCluster): Promise<boolean> {
  try {
    await cluster.stop();
  } catch (error) {
    console.log(`# ${(error as Error).message}`);
    return false;
  }
  const left = cluster.leftovers.list();
  for (const line of left) console.log(`# left behind: ${line}`);
  return left.length === 0;
}

process.exitCode = await main(command.args);
