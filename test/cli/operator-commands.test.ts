import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { printable, table } from '../../src/cli/terminal-text.js';
import { runPod, startedNode } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { scratchDirectory } from '../scratch.js';
import { MAIN } from '../harness/programs.js';
import { Commands, type Ended } from './commands.js';
import { mirrorIn, noMirror } from './mirror.js';

const commands = new Commands();

tap.teardown(() => commands.close());

const command = (...args: string[]): Promise<Ended> => commands.gpuManager(args);

/** In a process of its own, since doctor loads the libraries of the mirror and starts processes with them. */
async function doctor(...args: string[]): Promise<Ended> {
  return doctorBelow([], args);
}

/** Doctor started by another program. */
async function doctorBelow(starter: readonly string[], args: readonly string[]): Promise<Ended> {
  const [program = '', ...rest] = [...starter, process.execPath, MAIN, 'doctor', ...args];
  try {
    const { stdout, stderr } = await promisify(execFile)(program, rest);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const failed = error as { code: number; stdout: string; stderr: string };
    return { code: failed.code, out: failed.stdout, err: failed.stderr };
  }
}

test('the node commands print for people and for programs', async (t) => {
  const agent = await startedNode(t, { knowsPods: true });
  const wanted = simplePod(30, 8);
  await runPod(agent, wanted);
  await agent.kubelet.admit(simplePod(150, 8));
  const socket = ['--display-socket', agent.config.displaySocket];
  const name = `default/${wanted.name}/main`;

  t.match((await command('graph', ...socket)).out, /^GPU +MODEL .*\n0 .* 70 of 100 +\d+ MiB of \d+ MiB .* healthy\n/);
  const graph = await command('graph', '-o', 'tkestack', ...socket);
  t.match(graph.out, /^ROOT:5\n/);
  t.notMatch(graph.out, /nvlinks/);
  t.match(
    (await command('graph', '-o', 'tkestack', '--extended', ...socket)).out,
    /nvlinks: \[\], model: .*, usable: true/,
  );
  t.match(JSON.parse((await command('graph', '-o', 'json', ...socket)).out), {
    graph: graph.out,
    tree: [{ level: 'NODE' }],
    nvlinks: [],
  });

  t.match((await command('usage', ...socket)).out, new RegExp(`^CONTAINER .*\n${name} +0 +0 % +30 % +0 MiB +2048 MiB`));
  t.match(JSON.parse((await command('usage', '-o', 'json', ...socket)).out), {
    [wanted.uid]: { project: 'default', spec: { main: { mem: 2048 } } },
  });

  const events = await command('events', ...socket);
  t.match(events.out, new RegExp(`Started +${name}: 30 cores of GPU 0\n.*! Refused +.*150 is more than one GPU`));
  t.match(events.out, /^TIME +EVENT +MESSAGE\n/);
  t.equal(events.out.trim().split('\n').length, 3);
  const lines = (await command('events', '-o', 'json', ...socket)).out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  t.match(lines, [
    { kind: 'Started', owner: { pod: wanted.name }, allocation: /^[0-9a-f]{16}$/ },
    { kind: 'Refused', level: 'warning' },
  ]);

  t.match((await command('top', '--once', ...socket)).out, new RegExp(`GPU 0 .*30 allocated[^]*${name}`));
  t.match(JSON.parse((await command('top', '-o', 'json', ...socket)).out), {
    gpus: [{ allocatedCores: 30 }],
    allocations: [{ cores: 30 }],
  });
  t.match(await command('version', ...socket), { code: 0, out: /^gpu-manager \S+\nagent +\d/ });
});

test('a command that finds no agent reports it and ends with 1, and version answers without an agent', async (t) => {
  const socket = ['--display-socket', join(await scratchDirectory(t), 'none.sock')];
  for (const name of ['graph', 'events'])
    t.match(await command(name, ...socket), { code: 1, err: /^gpu-manager: ./ }, name);
  t.match(await command('version', ...socket), { code: 0, out: /does not answer/ });
  t.match(await command('usage', '-o', 'xml'), { code: 2, err: /Expected table, wide, json, yaml/ });
});

test('text that users chose cannot move the cursor', (t) => {
  t.equal(printable('a\u001b[2J\r\n\u202eb\u0085é'), 'a?[2J???b?é');
  t.equal(table(['A', 'B'], [['x\u001b[31m', '1']]), 'A       B\nx?[31m  1\n');
  t.end();
});

test('the shell completes commands, flags and values', async (t) => {
  const script = join(await scratchDirectory(t), 'completion');
  await writeFile(script, (await command('completion', 'bash')).out);
  const complete = (...words: string[]): string[] => {
    const line = `source ${script}; COMP_WORDS=(gpu-manager ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _gpu_manager; echo "\${COMPREPLY[@]}"`;
    return spawnSync('bash', ['-c', line], { encoding: 'utf8' }).stdout.trim().split(' ');
  };
  t.same(complete('to'), ['top', 'topology']);
  t.same(complete('limits', 's'), ['set']);
  t.same(complete('limits', 'set', '--so'), ['--soft']);
  t.same(complete('usage', '-o', ''), ['table', 'wide', 'json', 'yaml']);
  t.same(complete('completion', ''), ['bash', 'zsh', 'fish', '--help']);
  t.ok(complete('run', '--tls').includes('--tls-cert-file'));
  t.match((await command('completion', 'zsh')).out, /^#compdef gpu-manager\n/);
  if (spawnSync('zsh', ['--version']).status === 0) {
    await writeFile(script, (await command('completion', 'zsh')).out);
    t.equal(spawnSync('zsh', ['-n', script]).status, 0);
  }
  const fish = (await command('completion', 'fish')).out;
  t.match(fish, /^complete -c gpu-manager -f -n "__gpu_manager_at 'limits'" -a 'list set release --help'$/m);
  if (spawnSync('fish', ['--version']).status === 0) {
    await writeFile(script, fish);
    t.equal(spawnSync('fish', ['-n', script]).status, 0);
  }
});

test('doctor passes a healthy node, and names the problems of another one with the remedies', async (t) => {
  const agent = await startedNode(t);
  const { config } = agent;
  const flags = [
    '--driver',
    'sim',
    '--display-socket',
    config.displaySocket,
    '--device-plugin-path',
    config.devicePluginPath,
    '--pod-resources-socket',
    config.podResourcesSocket,
  ];
  const good = await command('doctor', ...flags);
  t.match(good.out, /^ok +driver +sim .*1 GPUs/m);
  t.match(good.out, /^ok +kubelet +pod-resources lists 0 containers/m);
  t.match(good.out, /^ok +agent +is running and can serve pods/m);
  t.equal(good.code, good.out.includes('FAILED') ? 1 : 0);
  t.notMatch(good.out, /NVIDIA's device plugin/);
  const both = { Data: { PodDeviceEntries: null, RegisteredDevices: { 'nvidia.com/gpu': ['GPU-a'] } } };
  await writeFile(join(config.devicePluginPath, 'kubelet_internal_checkpoint'), JSON.stringify(both));
  t.match(
    (await command('doctor', ...flags)).out,
    /^warning +kubelet +NVIDIA's device plugin offers nvidia\.com\/gpu here too/m,
  );
  const nri = ['--nri', '--nri-socket', config.podResourcesSocket, '--cpu-affinity', 'prefer'];
  const manager = join(config.podResourcesSocket, '../../cpu_manager_state');
  t.match((await command('doctor', ...flags, ...nri)).out, /^warning +nri +.*cpu_manager_state cannot be read: /m);
  for (const [policy, line] of [
    ['static', /^warning +nri +.* policy static: --cpu-affinity=prefer binds nothing/m],
    ['none', /^ok +nri +.* policy none/m],
  ] as const) {
    await writeFile(manager, JSON.stringify({ policyName: policy }));
    const { out } = await command('doctor', ...flags, ...nri);
    t.match(out, line);
    t.match(out, /^ok +nri +listens at /m);
  }
  const directory = await scratchDirectory(t);
  await mkdir(join(directory, 'dev'));
  await symlink('/dev/null', join(directory, 'dev/nvidia0'));
  const bad = await command(
    'doctor',
    '-o',
    'json',
    '--driver',
    'nvidia',
    '--nvml-path',
    join(directory, 'none.so'),
    '--host-root',
    directory,
    '--native-path',
    directory,
    '--volume-config',
    join(directory, 'none.conf'),
    '--device-plugin-path',
    directory,
    '--display-socket',
    join(directory, 'none.sock'),
  );
  t.equal(bad.code, 1);
  const found = JSON.parse(bad.out) as { check: string; state: string; advice: string | null }[];
  for (const check of ['driver', 'libraries', 'native', 'mirror', 'kubelet'])
    t.match(
      found.find((one) => one.check === check),
      { state: 'failed', advice: /\w/ },
      check,
    );
  t.match(
    found.find((one) => one.check === 'agent'),
    { state: 'warning', advice: /start it/ },
  );
  t.match(
    found.find((one) => one.check === 'devices'),
    { state: 'warning', advice: 'ln -sf ../nvidia0 /dev/char/1:3' },
  );
});

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

test(
  'doctor tries a limit where the mirror lies below /etc, as it does on a node',
  { skip: noMirror || (mayMount ? false : 'mounts need CAP_SYS_ADMIN') },
  async (t) => {
    const directory = await scratchDirectory(t);
    const { config, environment } = await mirrorIn(directory);
    // Any folder of /etc takes the mirror's place, for doctor and its children only.
    const [folder = ''] = (await readdir('/etc', { withFileTypes: true })).flatMap((entry) =>
      entry.isDirectory() ? [join('/etc', entry.name)] : [],
    );
    await writeFile(config, (await readFile(config, 'utf8')).replaceAll(directory, folder));
    const starter = ['unshare', '-m', 'sh', '-c', 'mount --bind "$1" "$2" && shift 2 && exec "$@"', 'sh'];
    const args = ['-o', 'json', '--driver', 'sim', '--volume-config', config];
    const { out } = await doctorBelow(['env', ...assigned(environment), ...starter, directory, folder], args);
    t.match(
      (JSON.parse(out) as { check: string }[]).find(({ check }) => check === 'enforcement'),
      { state: 'ok', what: 'a program limited to 2048 MiB sees 2048 MiB and is refused more (CUresult 2)' },
    );
  },
);

function assigned(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
}

test('doctor tries the mirror in a process of its own', { skip: noMirror }, async (t) => {
  const directory = await scratchDirectory(t);
  const { libraries, config, environment } = await mirrorIn(directory);
  Object.assign(process.env, environment);
  t.teardown(() => Object.keys(environment).forEach((name) => Reflect.deleteProperty(process.env, name)));
  const look = async () => {
    const { out } = await doctor(
      '-o',
      'json',
      '--driver',
      'sim',
      '--volume-config',
      config,
      '--device-plugin-path',
      directory,
      '--display-socket',
      join(directory, 'none.sock'),
    );
    const found = JSON.parse(out) as { check: string; state: string; what: string; advice: string }[];
    return {
      interposition: found.find(({ check }) => check === 'interposition'),
      enforcement: found.find(({ check }) => check === 'enforcement'),
    };
  };
  const good = await look();
  t.match(good.interposition, { state: 'ok', what: /loads the control library, which reports CUDA 13\.0 with 2 GPUs/ });
  t.match(
    good.enforcement,
    mayMount
      ? { state: 'ok', what: 'a program limited to 2048 MiB sees 2048 MiB and is refused more (CUresult 2)' }
      : { state: 'skipped', what: /CAP_SYS_ADMIN/ },
  );
  t.notOk(existsSync('/etc/vcuda'));
  // The driver in place of the control library: everything works, and nothing is limited.
  await cp(join(libraries, 'libcuda-origin.so.1'), join(libraries, 'libcuda.so.1'));
  if (mayMount)
    t.match((await look()).enforcement, {
      state: 'failed',
      what: /limited to 2048 MiB was given more/,
      advice: /does not enforce the limit/,
    });
  await writeFile(join(libraries, 'libcuda.so.1'), 'no library');
  t.match((await look()).interposition, {
    state: 'failed',
    what: /does not run/,
    advice: /docs\/reference\/libraries.md/,
  });
});
