import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { environmentName, RUN_FLAGS } from '../../src/cli/run-flags.js';
import { scratchDirectory } from '../scratch.js';
import { Commands } from './commands.js';

const commands = new Commands();

tap.teardown(() => commands.close());

interface Outcome {
  readonly status: number | null;
  readonly lines: readonly string[];
}

async function gpuManager(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const { code, err } = await commands.gpuManager(args, { env });
  return { status: code, lines: err.trim().split('\n') };
}

/** Flags with which the agent would start in `directory`. */
function sound(directory: string): string[] {
  const at = (name: string): string => join(directory, name);
  return [
    'run',
    '--driver=sim',
    '--standalone',
    '--share-mode',
    '--query-port=0',
    `--virtual-manager-path=${at('vm')}`,
    `--device-plugin-path=${at('dp')}`,
    `--checkpoint-path=${at('ck')}`,
    `--display-socket=${at('d.sock')}`,
    `--pod-resources-socket=${at('pr.sock')}`,
    `--sim-device-path=${at('dev')}`,
  ];
}

for (const [what, args, message] of [
  ['an unknown flag', ['--nope'], /unknown option '--nope'/],
  ['an unknown driver', ['--driver=amd'], /--driver: expected nvidia, sim or dummy \(got "amd"\)/],
  ['a port beyond 65535', ['--query-port=70000'], /--query-port: must be at most 65535/],
  ['a probe port beyond 65535', ['--probe-port=70000'], /--probe-port: must be at most 65535/],
  ['one port for two listeners', ['--probe-port=5678', '--query-port=5678'], /--probe-port: 5678 is the --query-port/],
  ['a boolean flag with another value', ['--share-mode=maybe'], /--share-mode: expected true or false \(got "maybe"\)/],
  ['a duration without a unit', ['--wait-timeout=60'], /--wait-timeout: expected a duration such as 500ms, 5s or 1m/],
  [
    'a certificate without its key',
    ['--tls-cert-file=/a'],
    /--tls-cert-file and --tls-private-key-file must be given together/,
  ],
  ['more than a GPU has without turns', ['--suspend-factor=3'], /--suspend-factor 3 needs --allow-suspend/],
  [
    'token review without the API server',
    ['--token-review'],
    /--token-review: needs the API server, which --standalone does not use/,
  ],
  [
    'token review over plain HTTP',
    ['--standalone=false', '--token-review', '--query-addr=0.0.0.0'],
    /--token-review: tokens would cross the network unprotected/,
  ],
  ['CPU affinity without NRI', ['--cpu-affinity=prefer'], /--cpu-affinity=prefer: .*give --nri as well/],
  [
    'a socket path that is too long',
    [`--display-socket=/tmp/${'x'.repeat(110)}`],
    /--display-socket: socket path is 115 bytes long, 107 is the limit/,
  ],
  [
    'a directory below a file',
    ['--checkpoint-path=/dev/null/x'],
    /--checkpoint-path: \/dev\/null\/x is not a writable directory: a part of the path is a file/,
  ],
  [
    'a missing extra config',
    ['--extra-config=/nowhere.json'],
    /--extra-config: \/nowhere\.json: there is no such file or directory/,
  ],
  ['a missing simulated node', ['--sim-node=/nowhere'], /--sim-node: \/nowhere: there is no such file or directory/],
  [
    'a simulated machine without libraries',
    ['--sim-state=/tmp', '--native-path=/nowhere'],
    /--sim-state: \/nowhere\/sim\/libnvidia-ml\.so\.1: there is no such file or directory/,
  ],
] as const) {
  test(`${what} is refused in one clear line with exit code 2, before anything starts`, async (t) => {
    const directory = await scratchDirectory(t);
    const { status, lines } = await gpuManager([...sound(directory), ...args]);
    t.equal(status, 2);
    t.equal(lines.length, 1, lines.join('\n'));
    t.match(lines[0], message);
    const sockets = (await readdir(directory, { recursive: true })).filter((name) => name.endsWith('.sock'));
    t.same(sockets, []);
  });
}

for (const [what, flag, text, message] of [
  ['an extra config that is not JSON', 'extra-config', '{"default":', /--extra-config: .*JSON/],
  [
    'an extra config with a mistyped field',
    'extra-config',
    '{"default":{"devices":"x"}}',
    /--extra-config: .*default\.devices/,
  ],
  ['a text that is not a topology', 'sim-node', 'hello\nworld\n', /--sim-node: /],
  ['a topology with an incomplete row', 'sim-node', '\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\n', /--sim-node: .*line 3/],
  ['a node without GPUs', 'sim-node', '{"gpus":[]}', /--sim-node: .*gpus/],
] as const) {
  test(`the error about ${what} names its position`, async (t) => {
    const directory = await scratchDirectory(t);
    await writeFile(join(directory, 'input'), text);
    const { status, lines } = await gpuManager([...sound(directory), `--${flag}=${join(directory, 'input')}`]);
    t.equal(status, 2);
    t.equal(lines.length, 1, lines.join('\n'));
    t.match(lines[0], message);
  });
}

test(
  'the agent refuses a directory that it cannot write before it starts anything',
  { skip: process.getuid?.() === 0 ? 'root may write anywhere' : false },
  async (t) => {
    const directory = await scratchDirectory(t);
    await mkdir(join(directory, 'dp'));
    await chmod(join(directory, 'dp'), 0o500);
    const { status, lines } = await gpuManager(sound(directory));
    t.equal(status, 2);
    t.match(lines[0], /--device-plugin-path: .*EACCES/);
  },
);

test('every flag has an environment variable, and the command line takes precedence', async (t) => {
  const directory = await scratchDirectory(t);
  t.match(
    (await gpuManager(sound(directory), { GPU_MANAGER_QUERY_ADDR: '' })).lines[0],
    /--query-addr: must not be empty/,
  );
  t.match((await gpuManager([...sound(directory), '--driver=x'], { GPU_MANAGER_DRIVER: 'y' })).lines[0], /got "x"/);
  t.equal(environmentName('virtual-manager-path'), 'GPU_MANAGER_VIRTUAL_MANAGER_PATH');
  t.equal(new Set(RUN_FLAGS.map((flag) => flag.name)).size, RUN_FLAGS.length);
});

test("the original's flags with underscores, and a call without a subcommand, still work", async (t) => {
  const { status, lines } = await gpuManager(['--query_port=x']);
  t.equal(status, 2);
  t.match(lines[0], /--query-port: expected a whole number/);
});
