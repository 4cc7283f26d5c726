import { test } from 'tap';
import type { SwitchAnswer, SwitchState } from '../../src/console/workload-switch.js';
import { podObject } from './cluster-objects.js';
import { runningConsole, STRICT, type RunningConsole } from './fixture.js';

const JOB = { kind: 'Job.batch', namespace: 'research', name: 'train' };
const SERVE = { kind: 'Deployment.apps', namespace: 'research', name: 'serve' };

async function strictConsole(t: Parameters<typeof runningConsole>[0], config = {}): Promise<RunningConsole> {
  return runningConsole(
    t,
    (server) => {
      for (const namespace of ['research', 'vision']) {
        server.seed('pods', podObject('now', { namespace, node: 'gpu-node-1', gpus: [0] }));
        server.seed('jobs', { metadata: { name: 'train', namespace }, spec: { parallelism: 2 } });
        server.seed('deployments', { metadata: { name: 'serve', namespace }, spec: { replicas: 3 } });
      }
    },
    config,
    STRICT,
  );
}

async function stateOf(console: RunningConsole, user: string | null, workload: object): Promise<SwitchState | number> {
  const query = new URLSearchParams(workload as Record<string, string>).toString();
  const answer = await console.get(`/api/workload?${query}`, user);
  return answer.status === 200 ? ((await answer.json()) as SwitchState) : answer.status;
}

async function change(console: RunningConsole, user: string | null, body: object, headers = {}) {
  const answer = await fetch(`${console.base}/api/workload/switch`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(user === null ? {} : { authorization: `Bearer ${user}` }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return answer.status === 200 ? ((await answer.json()) as SwitchAnswer) : answer.status;
}

test('a user stops and resumes a workload with the rights of the user, not with those of the console', async (t) => {
  const console = await strictConsole(t);
  t.same(await stateOf(console, 'owner', JOB), { ok: true, way: 'suspend', isStopped: false });
  t.same(await change(console, 'owner', { ...JOB, isStopped: true }), { ok: true });
  t.match(console.server.read('jobs', 'research', 'train'), { spec: { suspend: true, parallelism: 2 } });
  t.match(await stateOf(console, 'owner', JOB), { isStopped: true });
  t.same(await change(console, 'owner', { ...JOB, isStopped: false }), { ok: true });
  t.match(console.server.read('jobs', 'research', 'train'), { spec: { suspend: false } });
  const users = console.server.requests.filter(({ verb }) => verb === 'patch').map(({ user }) => user);
  t.same(users, ['owner', 'owner']);
});

test('a workload that is scaled to 0 gets as many replicas as it had', async (t) => {
  const console = await strictConsole(t);
  t.same(await stateOf(console, 'owner', SERVE), { ok: true, way: 'scale', isStopped: false, replicas: 3 });
  for (const _again of [1, 2]) t.same(await change(console, 'owner', { ...SERVE, isStopped: true }), { ok: true });
  t.match(console.server.read('deployments', 'research', 'serve'), { spec: { replicas: 0 } });
  t.match(await stateOf(console, 'owner', SERVE), { isStopped: true, replicas: 3 });
  t.same(await change(console, 'owner', { ...SERVE, isStopped: false }), { ok: true });
  const serve = console.server.read('deployments', 'research', 'serve');
  t.match(serve, { spec: { replicas: 3 } });
  t.same(serve?.metadata.annotations ?? {}, {}, 'nothing is left behind');
});

test('whoever lacks the right is told so, and changes nothing', async (t) => {
  const console = await strictConsole(t);
  t.equal(
    await stateOf(console, 'owner', { ...JOB, namespace: 'vision' }),
    404,
    'a namespace that the user does not see',
  );
  t.equal(await change(console, 'owner', { ...JOB, namespace: 'vision', isStopped: true }), 404);
  const refused = /^jobs\.batch is forbidden: User "scientist" cannot get/;
  t.match(await stateOf(console, 'scientist', JOB), { ok: false, reason: refused });
  t.match(await change(console, 'scientist', { ...JOB, isStopped: true }), { ok: false, reason: refused });
  t.match(await stateOf(console, 'owner', { ...JOB, kind: 'CronJob.batch' }), {
    reason: /cannot be stopped from here/,
  });
  t.match(await stateOf(console, 'owner', { ...JOB, name: 'none' }), { ok: false, reason: /not found/ });
  t.equal(await change(console, null, { ...JOB, isStopped: true }), 401);
  t.equal(await change(console, 'owner', { ...JOB, isStopped: 'yes' }), 400);
  t.equal(await change(console, 'owner', { ...JOB, isStopped: true }, { 'content-type': 'text/plain' }), 415);
  t.equal(console.server.requests.filter(({ verb }) => verb === 'patch').length, 0);
});

test('who may read but not change sees what a stop would do, and why it cannot', async (t) => {
  const readOnly = {
    ...STRICT,
    reviews: {
      tokens: new Map([['reader', 'reader']]),
      allows: (_user: string, { verb }: { readonly verb: string }) => verb === 'list',
    },
    tokens: new Map(['console', 'reader'].map((name) => [name, name])),
    authorize: (_user: string, { verb }: { readonly verb: string }) => ['get', 'list', 'watch'].includes(verb),
  };
  const console = await runningConsole(
    t,
    (server) => {
      server.seed('pods', podObject('now', { namespace: 'research', node: 'gpu-node-1', gpus: [0] }));
      server.seed('deployments', { metadata: { name: 'serve', namespace: 'research' }, spec: { replicas: 3 } });
    },
    {},
    readOnly,
  );
  const refusal = 'you may not patch deployments in namespace research';
  t.match(await stateOf(console, 'reader', SERVE), { ok: true, replicas: 3, refusal });
  t.match(await change(console, 'reader', { ...SERVE, isStopped: true }), { ok: false, reason: /cannot patch/ });
});
