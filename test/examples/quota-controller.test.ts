import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { eventually } from '../harness/eventually.js';
import { quotaServer } from '../quota-controller/setting.js';
import { scratchDirectory } from '../scratch.js';

const PROGRAM = fileURLToPath(new URL('../../../examples/quota-controller.mjs', import.meta.url));

test('the example of a controller follows groups and Allocations until it is interrupted', async (t) => {
  const server = await quotaServer();
  t.teardown(() => server.stop());
  const file = join(await scratchDirectory(t), 'kubeconfig');
  await writeFile(file, kubeconfig(server, {}));
  server.seed('bizgroupresourcequotas', {
    metadata: { name: 'vision' },
    spec: { hard: { 'limits.cpu': 4 } },
    status: { hard: { 'limits.cpu': '4' }, used: { 'limits.cpu': '500m' } },
  });
  server.seed('allocations', { metadata: { name: 'shop' }, status: {} });
  const child = spawn(process.execPath, [PROGRAM], { env: { ...process.env, KUBECONFIG: file } });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let [printed, failed] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (printed += text.toString()));
  child.stderr.on('data', (text: Buffer) => (failed += text.toString()));
  const shows = (line: string): Promise<unknown> => eventually(() => printed.includes(line), `${line} in the output`);
  await shows('group vision: 500m of 4 limits.cpu (13 %)\n');
  await shows('1 groups, 1 Allocations\n');
  const reclaimAt = '2026-11-28T08:00:00Z';
  server.edit('allocations', '', 'shop', (it) => ({ ...it, status: { overused: ['cpu'], reclaimAt } }));
  await shows(`namespace shop: more cpu than its share until ${reclaimAt}\n`);
  server.remove('bizgroupresourcequotas', '', 'vision');
  await shows('group vision: deleted\n');
  child.kill('SIGTERM');
  t.equal(await ended, 0);
  t.equal(failed, '');
});
