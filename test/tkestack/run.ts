import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Argument, Command } from 'commander';
import { packageFile } from '../../src/host/package-files.js';
import { timeLimit } from '../harness/time-factor.js';

const CANNOT_BUILD = 3;
const TESTS = ['upgrade', 'mixed'] as const;

const command = new Command('npm run test:tkestack --')
  .description(
    'Runs the tests with the real daemon of tkestack on private nodes of this machine. Without the means it says so ' +
      'and succeeds. Output is TAP.',
  )
  .addArgument(new Argument('[tests...]', 'only these (default: all)').choices(TESTS))
  .option(
    '--programs <folder>',
    'gpu-manager, gpu-client and gpu-admission of tkestack; what it lacks is built from Go modules',
    process.env['TKESTACK_CACHE'] ?? join(homedir(), '.cache/gpu-manager-tkestack'),
  )
  .option('--record', 'write recorded.json')
  .option('--logs <folder>', 'keep the logs of the nodes here')
  .parse();

function main(names: readonly string[]): number {
  const values = command.opts<{ programs: string; record?: boolean; logs?: string }>();
  const programs = resolve(values.programs);
  const reason = whyNone() ?? build(programs);
  if (reason !== null) {
    console.log(`1..0 # SKIP tkestack: ${reason}`);
    return values.record ? 1 : 0;
  }
  const work = mkdtempSync(join(tmpdir(), 'tkestack-'));
  const logs = values.logs ?? join(work, 'logs');
  const volumes = join(work, 'volume.conf');
  writeFileSync(volumes, VOLUME_CONF);
  try {
    const chosen = values.record ? ['upgrade'] : TESTS.filter((name) => names.length === 0 || names.includes(name));
    const failed = chosen.filter((name) => {
      console.log(`# ${name}`);
      // The test has a limit of its own; this one also ends a node whose test ended and whose processes did not.
      const { status } = spawnSync(
        'timeout',
        [
          ...['--signal=KILL', String(timeLimit(900)), packageFile('test/tkestack/private-node')],
          ...[packageFile('native/build/sim'), volumes, process.execPath],
          ...[fileURLToPath(new URL(`${name}.js`, import.meta.url)), programs, logs],
          ...(values.record ? ['--record'] : []),
        ],
        { stdio: 'inherit', env: { ...process.env, TAP_TIMEOUT: String(timeLimit(600)) } },
      );
      return status !== 0;
    });
    for (const name of failed) console.log(`# failed: tkestack ${name}`);
    return failed.length === 0 ? 0 : 1;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The original looks for these in the cache of the dynamic linker; its own list has dozens. */
const VOLUME_CONF = JSON.stringify({
  volume: [
    {
      name: 'nvidia',
      base: '/etc/gpu-manager/vdriver',
      mode: 'ro',
      components: { binaries: [], libraries: ['libnvidia-ml.so', 'libcuda.so'] },
    },
    {
      name: 'origin',
      base: '/etc/gpu-manager/vdriver',
      mode: 'ro',
      components: { binaries: [], libraries: ['libnvidia-ml.so', 'libcuda.so'] },
    },
  ],
});

function whyNone(): string | null {
  if (process.getuid?.() !== 0) return 'not root';
  const { status, stderr } = spawnSync('unshare', ['--mount', '--cgroup', '--pid', '--fork', 'true'], {
    encoding: 'utf8',
  });
  return status === 0 ? null : `no namespaces: ${stderr.trim()}`;
}

/** Returns the reason why the programs cannot be built. */
function build(directory: string): string | null {
  const { status, stdout } = spawnSync(packageFile('scripts/build-tkestack'), [directory], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status === 0) return null;
  if (status === CANNOT_BUILD) return stdout.trim().split('\n').at(-1) ?? '';
  throw new Error(`scripts/build-tkestack ended with ${String(status)}`);
}

process.exitCode = main(command.args);
