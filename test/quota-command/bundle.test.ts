import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { Quota } from '../../src/quota/index.js';
import { readManifests } from '../../src/quota-command/manifest-file.js';
import { whatIf } from '../../src/quota-command/what-if.js';
import { offlineReviews } from '../../src/quota-controller/offline/offline-reviews.js';
import { scratchDirectory } from '../scratch.js';
import { MAIN } from '../harness/programs.js';

/** Output in the form of `helm template`: comments, an empty document, objects of all kinds. */
const BUNDLE = `---
# Source: shop/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { key: value }
---
# Source: shop/templates/nothing.yaml
---
apiVersion: quota.gpu-manager.io/v1
kind: BizGroupResourceQuota
metadata: { name: team }
spec: { parentBizGroup: shop, hard: { limits.cpu: 6 } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop, labels: { biz.group.resource.quota: team } }
spec: { replicas: 2, template: { spec: { containers: [{ name: main, resources: { limits: { cpu: 1 } } }] } } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: forgotten, namespace: shop }
spec:
  template:
    metadata: { labels: { biz.group.resource.quota: team } }
    spec: { containers: [{ name: main, resources: { limits: { cpu: 1 } } }] }
---
apiVersion: batch/v1
kind: Job
metadata: { name: migrate, namespace: shop }
spec: { template: { spec: { containers: [{ name: main, resources: { limits: { cpu: 1 } } }] } } }
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: web, namespace: shop }
spec: { maxReplicas: MAXIMUM, scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: web } }
---
apiVersion: example.com/v1
kind: Database
metadata: { name: main }
`;

async function answer(
  text: string,
  hard: number,
): Promise<{ readonly lines: readonly string[]; readonly refused: number }> {
  const quota = new Quota();
  quota.createGroup({ name: 'shop', hard: { 'limits.cpu': hard } });
  const read = readManifests(text);
  if (!read.ok) throw new Error(read.problems.join());
  const { reviews } = await offlineReviews(read.manifests);
  const { text: written, refused } = await whatIf(quota, read.manifests, 'table', reviews);
  return { lines: written.split('\n').filter((line) => /^[a-zA-Z]/.test(line)), refused };
}

test('managed objects of a bundle are decided, and all others are listed with a reason', async (t) => {
  const { lines, refused } = await answer(BUNDLE.replace('MAXIMUM', '6'), 10);
  t.strictSame(lines, [
    'unmanaged  ConfigMap//settings: ConfigMap is not a kind of workload',
    'allowed  BizGroupResourceQuota.quota.gpu-manager.io//team',
    'allowed  Deployment.apps/shop/web in team',
    'unmanaged  Deployment.apps/shop/forgotten: no webhook would review it: the label biz.group.resource.quota is on its pods, but must be on the object itself',
    'unmanaged  Job.batch/shop/migrate: no webhook would review it: the label biz.group.resource.quota is missing',
    'allowed  HorizontalPodAutoscaler.autoscaling/shop/web with 6 replicas in team',
    'unmanaged  Database.example.com//main: Database is not a kind of workload',
  ]);
  t.equal(refused, 0);
});

test('an autoscaler whose maximum does not fit, and a group without room in its parent, are refused', async (t) => {
  const wide = await answer(BUNDLE.replace('MAXIMUM', '7'), 10);
  t.equal(wide.refused, 1);
  t.match(
    wide.lines[5],
    /^REFUSED {2}HorizontalPodAutoscaler\.autoscaling\/shop\/web with 7 replicas in team: .*at most 6/,
  );
  const small = await answer(BUNDLE.replace('MAXIMUM', '6'), 5);
  t.match(small.lines[1], /^REFUSED {2}BizGroupResourceQuota.*ParentExceeded/);
  t.match(small.lines[2], /^REFUSED {2}Deployment.*there is no group team/);
});

test("unreadable objects are refused by name, and kubectl's lists are read", async (t) => {
  t.match(await answer('{ apiVersion: apps/v1 }', 1), {
    refused: 1,
    lines: [/InvalidManifest: .*without apiVersion or kind/],
  });
  t.match(
    await answer(
      '{ apiVersion: quota.gpu-manager.io/v1, kind: BizGroupResourceQuota, metadata: { name: a }, spec: {} }',
      1,
    ),
    {
      refused: 1,
      lines: [/^REFUSED {2}BizGroupResourceQuota\.quota\.gpu-manager\.io\/\/a: InvalidManifest: spec\.hard/],
    },
  );
  const list =
    'apiVersion: v1\nkind: ConfigMapList\nitems: [{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }]';
  t.strictSame((await answer(list, 1)).lines, ['unmanaged  ConfigMap//a: ConfigMap is not a kind of workload']);
});

test('a bundle is read from a pipe, and the exit status shows whether all of it fits', async (t) => {
  const directory = await scratchDirectory(t);
  await writeFile(join(directory, 'tree.yaml'), 'groups: [{ name: shop, hard: { limits.cpu: 10 } }]');
  const piped = (
    args: readonly string[],
    input: string,
  ): Promise<{ readonly code: number | null; readonly out: string }> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [MAIN, 'quota', 'what-if', 'tree.yaml', ...args], { cwd: directory });
      let out = '';
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, out }));
      // In two pieces, as a pipe may deliver it.
      child.stdin.write(input.slice(0, 100));
      setImmediate(() => child.stdin.end(input.slice(100)));
    });
  for (const args of [['-f', '-'], ['-']]) {
    t.match(await piped(args, BUNDLE.replace('MAXIMUM', '6')), { code: 0, out: /^unmanaged {2}ConfigMap/ });
    t.equal((await piped(args, BUNDLE.replace('MAXIMUM', '7'))).code, 1);
  }
  t.equal((await piped([], '')).code, 2);
  const json = await piped(['-o', 'json', '-f', '-'], BUNDLE.replace('MAXIMUM', '6'));
  const rows = json.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly code: string });
  t.strictSame(
    rows.map(({ code }) => code),
    ['NotManaged', 'OK', 'OK', 'NotManaged', 'NotManaged', 'OK', 'NotManaged'],
  );
});
