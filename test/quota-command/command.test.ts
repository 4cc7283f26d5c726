import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { Commands, type Ended } from '../cli/commands.js';
import { scratchDirectory } from '../scratch.js';

const commands = new Commands();

tap.teardown(() => commands.close());

const run = (directory: string, args: readonly string[], input = ''): Promise<Ended> =>
  commands.run({
    program: 'gpu-manager',
    args: ['quota', ...args],
    env: { PATH: process.env.PATH ?? '' },
    directory,
    input,
  });

const TREE = 'groups: [{name: g, hard: {limits.cpu: 4, limits.cpu.A4: 9}}]';
const SCRIPT =
  '{"type":"createGroup","name":"h","hard":{"limits.cpu":4}}\n{"type":"admit","workload":"Job/a","group":"h","podSets":[{"count":3,"limits":{"cpu":1}}]}\n';

test('validate prints a tree with warnings, or refuses it with the errors', async (t) => {
  const directory = await scratchDirectory(t);
  const shown = await run(directory, ['validate', '-', '-o', 'json'], TREE);
  t.match(JSON.parse(shown.out), { name: 'g', hard: { 'limits.cpu': '4' } });
  t.match(shown.err, /g: Unreachable: limits.cpu.A4/);
  t.equal(shown.code, 0);
  const wrong = await run(
    directory,
    ['validate', '-'],
    'groups: [{name: p, hard: {pods: 1}, children: [{name: a, hard: {pods: 2}}, {name: b, hard: {}}]}]',
  );
  t.equal(wrong.code, 1);
  t.match(wrong.err, /a: ParentExceeded.*\n.*b: group p limits pods/);
  for (const args of [['validate', 'nowhere.yaml'], ['validate'], ['validate', '-', '-o', 'xml'], ['bogus']])
    t.equal((await run(directory, args)).code, 2, args.join(' '));
});

test('the command refuses a manifest of a hundred megabytes without reading it', async (t) => {
  const directory = await scratchDirectory(t);
  await writeFile(join(directory, 'tree.yaml'), TREE);
  await writeFile(join(directory, 'big.yaml'), Buffer.alloc(100 << 20, 'x'));
  const { code, err } = await run(directory, ['what-if', 'tree.yaml', 'big.yaml']);
  t.equal(code, 2);
  t.match(err, /big.yaml: 104857600 bytes, at most/);
});

test('a journal keeps the state between commands', async (t) => {
  const directory = await scratchDirectory(t);
  t.equal((await run(directory, ['replay', '-', '--store', 'store'], SCRIPT)).code, 0);
  const second = await run(
    directory,
    ['replay', '-', '--store', 'store', '-o', 'json'],
    '{"type":"scale","workload":"Job/a","replicas":5}\n',
  );
  t.match(JSON.parse(second.out), { code: 'QuotaExceeded', hints: { maxReplicas: 4 } });
  t.match((await run(directory, ['report', 'store'])).out, /h +limits.cpu +4 +3 +3 +1 +75%/);
});

test('a script with an unreadable end changes nothing', async (t) => {
  const directory = await scratchDirectory(t);
  const { code, err } = await run(directory, ['replay', '-', '--store', 'store'], `${SCRIPT}{"type":"oops"}\n`);
  t.equal(code, 2);
  t.match(err, /line 3: unknown type "oops"/);
  t.match(await run(directory, ['report', 'store']), { code: 2, err: /store: the directory does not exist/ });
});

test('an audit file continues where it ended, and verification shows what was changed in it', async (t) => {
  const directory = await scratchDirectory(t);
  const file = join(directory, 'audit');
  await run(directory, ['replay', '-', '--store', 'store', '--audit', 'audit'], SCRIPT);
  await run(
    directory,
    ['replay', '-', '--store', 'store', '--audit', 'audit'],
    '{"type":"release","workload":"Job/a"}\n',
  );
  const whole = await run(directory, ['verify', 'audit']);
  t.match(whole.out, /^3 events, last digest [0-9a-f]{64}\n$/);
  const head = whole.out.trim().split(' ').at(-1) ?? '';
  const lines = (await readFile(file, 'utf8')).split('\n');
  await writeFile(file, `${lines.slice(0, 2).join('\n')}\n`);
  t.equal((await run(directory, ['verify', 'audit'])).code, 0, 'a truncated end is not detected');
  t.equal((await run(directory, ['verify', 'audit', '--head', head])).code, 1, 'unless the last digest is known');
  await writeFile(file, lines.join('\n').replace('"3000"', '"2000"'));
  const changed = await run(directory, ['verify', 'audit']);
  t.equal(changed.code, 1);
  t.match(changed.err, /line 2: the line was changed/);
  const refused = await run(directory, ['replay', '-', '--audit', 'audit'], SCRIPT);
  t.equal(refused.code, 2, 'nothing is appended to the file');
  t.equal((await run(directory, ['verify', 'nowhere'])).code, 2);
});
