import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { eventually } from '../harness/eventually.js';
import { QuotaCluster } from '../quota-controller/cluster.js';
import { scratchDirectory } from '../scratch.js';
import { Commands, type Ended } from './commands.js';

const commands = new Commands();

tap.teardown(() => commands.close());

function quotaIn(directory: string) {
  const env = { PATH: process.env.PATH ?? '', HOME: directory, KUBECONFIG: join(directory, 'kubeconfig') };
  return (...args: readonly string[]): Promise<Ended> =>
    commands.run({ program: 'gpu-manager', args: ['quota', ...args], env, directory, input: '' });
}

const GPU_HOURS = 'cash/limits.cpu';

test('grant, lend and transfer change the objects of a cluster, and its webhooks decide', async (t) => {
  const directory = await scratchDirectory(t);
  const quota = quotaIn(directory);
  const on = await QuotaCluster.start(2);
  t.teardown(() => on.stop());
  await writeFile(join(directory, 'kubeconfig'), kubeconfig(on.server, {}));
  await on.createGroup('company', { 'limits.cpu': 20, [GPU_HOURS]: 1000 });
  await on.createGroup('vision', { 'limits.cpu': 10, [GPU_HOURS]: 0 }, 'company');
  await on.createGroup('speech', { 'limits.cpu': 10, [GPU_HOURS]: 0 }, 'company');
  const hard = (group: string, key = 'limits.cpu'): unknown =>
    (on.statusOf(group)['hard'] as Readonly<Record<string, string>> | undefined)?.[key];

  const granted = await quota(
    'grant',
    'vision',
    GPU_HOURS,
    '100',
    '--name',
    'weekly',
    '--every',
    '7d',
    '--persons',
    '3',
  );
  t.match(granted, { code: 0, out: 'vision: grant weekly of cash/limits.cpu=100\n' });
  await eventually(() => hard('vision', GPU_HOURS) === '300', 'the hours');
  t.match(await on.deploy('web', 'vision', 1, 5), { ok: true });
  await eventually(() => on.used('vision') === '5', 'the use');
  t.match(await quota('grant', 'vision', GPU_HOURS, '5', '--name', 'weekly'), {
    code: 1,
    err: /already has a grant named weekly/,
  });
  t.match(await quota('grant', 'vision', 'cash/pods', '5', '--name', 'x'), { code: 1, err: /no budget cash\/pods/ });
  t.match(await quota('grant', 'nobody', GPU_HOURS, '5', '--name', 'x'), { code: 1, err: /nobody/ });

  t.match(await quota('transfer', 'vision', 'speech', 'limits.cpu=2'), { code: 0 });
  await eventually(() => hard('vision') === '8' && hard('speech') === '12', 'the transfer');
  t.match(await quota('transfer', 'vision', 'company', 'limits.cpu=1'), { code: 1, err: /are not siblings/ });
  t.match(await quota('transfer', 'vision', 'speech', 'limits.cpu=9'), { code: 1, err: /needs its limits.cpu itself/ });

  t.match(await quota('lend', 'vision', 'speech', 'limits.cpu=9', '--name', 'large', '--until', '1h'), {
    code: 1,
    err: /group vision needs its limits.cpu itself/,
  });
  t.match(await quota('lend', 'vision', 'speech', 'limits.cpu=3', '--name', 'sprint', '--until', '8s'), { code: 0 });
  await eventually(() => hard('vision') === '5' && hard('speech') === '15', 'the loan');
  t.match(await on.scale('web', 2), { ok: false, message: /QuotaExceeded/ });
  await eventually(() => hard('vision') === '8' && hard('speech') === '12', 'it to go back by itself');
  t.match(await quota('lend', 'vision', 'speech', 'limits.cpu', '--name', 'x', '--until', '1h'), {
    code: 2,
    err: /"limits.cpu" is not key=amount/,
  });
});

test('grant, lend and transfer change a store', async (t) => {
  const directory = await scratchDirectory(t);
  const quota = quotaIn(directory);
  await writeFile(
    join(directory, 'tree.yaml'),
    'groups: [{ name: a, hard: { limits.cpu: 10, cash/limits.cpu: 0 } }, { name: b, hard: { limits.cpu: 10, cash/limits.cpu: 0 } }]',
  );
  await writeFile(join(directory, 'empty.jsonl'), '');
  t.match(await quota('replay', 'empty.jsonl', '--tree', 'tree.yaml', '--store', 'store'), { code: 0 });
  const store = ['--store', 'store'];
  t.match(await quota('grant', 'a', 'cash/limits.cpu', '40', '--name', 'first', ...store), { code: 0 });
  const granted = await quota('grant', 'a', 'cash/limits.cpu', '2', '--name', 'second', '-o', 'json', ...store);
  t.same(JSON.parse(granted.out), { group: 'a', grant: { key: 'cash/limits.cpu', amount: '2', name: 'second' } });
  t.match(await quota('grant', 'a', 'cash/limits.cpu', '2', '--name', 'second', ...store), {
    code: 1,
    err: /has a grant/,
  });
  t.match(await quota('transfer', 'a', 'b', 'limits.cpu=1', '-o', 'yaml', ...store), {
    code: 0,
    out: 'from: a\nto: b\namounts:\n  limits.cpu: "1"\n',
  });
  t.match(await quota('transfer', 'a', 'b', 'limits.cpu=100', ...store), {
    code: 1,
    err: /group a needs its limits.cpu itself/,
  });
  t.match(await quota('lend', 'b', 'a', 'limits.cpu=5', '--name', 'l', '--until', '1d', ...store), { code: 0 });
  const report = await quota('report', 'store');
  t.match(report.out, /a +limits\.cpu +14 /);
  t.match(report.out, /b +limits\.cpu +6 /);
  t.match(report.out, /a +cash\/limits\.cpu +42 /);
  t.match(await quota('grant', 'a', 'cash/limits.cpu', '1', '--name', 'x', '--store', 'misspelt'), {
    code: 2,
    err: /the directory does not exist/,
  });
});
