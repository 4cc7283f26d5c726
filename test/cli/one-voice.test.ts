import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import tap, { test } from 'tap';
import { gpuManagerProgram } from '../../src/cli/gpu-manager.js';
import { kubectlGpuProgram } from '../../src/cli/kubectl/plugin.js';
import { scratchDirectory } from '../scratch.js';
import { KUBECTL_GPU, MAIN } from '../harness/programs.js';
import { Commands } from './commands.js';

const BENCH = fileURLToPath(new URL('../../bench/run.js', import.meta.url));
const commands = new Commands();

tap.teardown(() => commands.close());

/** Commands that serve, print a script, or hand over to another program: they have no answer to format. */
const WITHOUT_ANSWER: ReadonlySet<string> = new Set([
  'gpu-manager run',
  'gpu-manager demo',
  'gpu-manager plugin-proxy',
  'gpu-manager claim-webhook',
  'gpu-manager console',
  'gpu-manager quota serve',
  // It prints manifests, in their own form.
  'gpu-manager convert',
  'gpu-manager completion',
  'kubectl gpu quota edit',
  'kubectl gpu __complete',
]);

function leaves(command: Command, path: string): readonly (readonly [path: string, command: Command])[] {
  return command.commands.length === 0
    ? [[path, command]]
    : command.commands.flatMap((sub) => leaves(sub, `${path} ${sub.name()}`));
}

/** Formats that one command has beside those of all. */
const OWN_FORMATS = new Map([
  ['gpu-manager graph', 'tkestack'],
  ...['nodes', 'pods', 'claims', 'idle'].map((list) => [`kubectl gpu ${list}`, 'name'] as const),
  ...['usage', 'throttling'].map((sums) => [`kubectl gpu ${sums}`, 'csv'] as const),
]);

test('every command with an answer takes -o table, wide, json and yaml, and every command explains itself', async (t) => {
  const [manager, plugin] = [await gpuManagerProgram(['--help']), await kubectlGpuProgram(['--help'])];
  const all = [...leaves(manager, 'gpu-manager'), ...leaves(plugin, 'kubectl gpu')];
  t.ok(all.length > 40, `${all.length} commands`);
  for (const [path, command] of all) {
    const formats = command.options.find(({ long }) => long === '--output')?.argChoices;
    const common = formats?.filter((format) => format !== OWN_FORMATS.get(path));
    t.same(common, WITHOUT_ANSWER.has(path) ? undefined : ['table', 'wide', 'json', 'yaml'], path);
    if (!path.endsWith('__complete')) t.match(command.description(), /^[a-z].*\w/, path);
  }
  t.same(
    [...WITHOUT_ANSWER].filter((path) => !all.some(([known]) => known === path)),
    [],
    'the exceptions exist',
  );
});

test('an error in a command line is one line: the program, what is wrong, and the help that says more', async (t) => {
  const directory = await scratchDirectory(t);
  const run = (program: 'gpu-manager' | 'kubectl-gpu', ...args: readonly string[]) =>
    commands.run({ program, args, env: { PATH: process.env.PATH ?? '' }, directory, input: '' });
  t.match(await run('gpu-manager', 'limits', 'set'), {
    code: 2,
    err: "gpu-manager: missing required argument 'container'; see gpu-manager limits set --help\n",
  });
  t.match(await run('kubectl-gpu', 'explan'), {
    code: 2,
    err: "kubectl gpu: unknown command 'explan' (Did you mean explain?); see kubectl gpu --help\n",
  });
});

test('the commands of a node find the agent by GPU_MANAGER_DISPLAY_SOCKET, unless a flag names another', async (t) => {
  const directory = await scratchDirectory(t);
  const env = { PATH: process.env.PATH ?? '', GPU_MANAGER_DISPLAY_SOCKET: '/nowhere/gm.sock' };
  const run = (...args: readonly string[]) => commands.run({ program: 'gpu-manager', args, env, directory, input: '' });
  for (const args of [
    ['graph'],
    ['usage'],
    ['top'],
    ['events'],
    ['limits'],
    ['health'],
    ['limits', 'release', 'web'],
  ]) {
    const none = (path: string) => ({
      code: 1,
      out: '',
      err: `gpu-manager: no agent answers at ${path}: is it running? (--display-socket)\n`,
    });
    t.match(await run(...args), none('/nowhere/gm.sock'), args.join(' '));
    t.match(await run(...args, '--display-socket', './flag.sock'), none('./flag.sock'), args.join(' '));
  }
});

test('a user who may not connect to the socket of the agent learns what to do', { skip: notRoot() }, async (t) => {
  const directory = await scratchDirectory(t);
  const socket = join(directory, 'agent.sock');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(() => server.close());
  chmodSync(directory, 0o755);
  chmodSync(socket, 0o600);
  const { status, stderr } = spawnSync(process.execPath, [MAIN, 'usage', '--display-socket', socket], {
    encoding: 'utf8',
    uid: 65_534,
    gid: 65_534,
    env: { PATH: process.env.PATH },
  });
  t.equal(
    stderr,
    `gpu-manager: this user may not connect to ${socket}: run the command as root, or name another socket (--display-socket)\n`,
  );
  t.equal(status, 1);
});

function notRoot(): string | false {
  return process.getuid?.() === 0
    ? false
    : 'root connects to every socket, and only root starts programs of other users';
}

test('both programs end without an error when the reader closes the pipe', (t) => {
  for (const program of [MAIN, KUBECTL_GPU]) {
    const { stdout, stderr } = spawnSync(
      'sh',
      ['-c', `{ "${process.execPath}" "${program}" --help; echo "ended with $?" >&2; } | true`],
      { encoding: 'utf8' },
    );
    t.same({ stdout, stderr }, { stdout: '', stderr: 'ended with 0\n' }, program);
  }
  t.end();
});

test('a benchmark explains itself', (t) => {
  const { stdout, status } = spawnSync(process.execPath, [BENCH, 'hook', '--help'], { encoding: 'utf8' });
  t.match(stdout, /^What the control library adds/);
  t.equal(status, 0);
  t.end();
});

test('without a command, a person at a terminal gets the help', { skip: noScript() }, (t) => {
  const { stdout, status } = spawnSync('script', ['-qec', `"${process.execPath}" "${MAIN}"`, '/dev/null'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
  t.match(stdout, /^Usage: gpu-manager \[options\] \[command\]\r\n/);
  t.equal(status, 2);
  t.end();
});

function noScript(): string | false {
  return spawnSync('script', ['--version']).status === 0 ? false : 'script of util-linux gives a program a terminal';
}
