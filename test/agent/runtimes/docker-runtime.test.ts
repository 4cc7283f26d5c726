import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { test } from 'tap';
import { RuntimeError } from '../../../src/agent/runtimes/container.js';
import { DockerRuntime } from '../../../src/agent/runtimes/docker-runtime.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';

const ID = 'b'.repeat(64);

type Answers = Readonly<Record<string, { readonly code?: number; readonly body: unknown } | 'never'>>;

/** Serves fixed answers by path at a unix socket, as a docker daemon would; keeps the requests. */
async function serveDocker(
  t: Parameters<typeof scratchDirectory>[0],
  answers: Answers,
): Promise<{ socket: string; requests: string[] }> {
  const socket = join(await scratchDirectory(t), 'docker.sock');
  const requests: string[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(decodeURIComponent(request.url ?? ''));
    const answer = answers[(request.url ?? '').split('?')[0] ?? ''] ?? {
      code: 404,
      body: { message: 'no such thing' },
    };
    if (answer === 'never') return;
    response.writeHead(answer.code ?? 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer.body));
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { socket, requests };
}

const VERSION = { '/version': { body: { Version: '26.1.5' } } };
const LABELS = {
  'io.kubernetes.pod.uid': 'u',
  'io.kubernetes.pod.name': 'p',
  'io.kubernetes.pod.namespace': 'n',
  'io.kubernetes.container.name': 'c',
};

function failure(question: Promise<unknown>): Promise<string> {
  return question.then(
    () => 'none',
    (error: unknown) => (error instanceof RuntimeError ? error.code : String(error)),
  );
}

test('containers are translated and listed by their labels, without the sandboxes of pods', async (t) => {
  const { socket, requests } = await serveDocker(t, {
    ...VERSION,
    '/containers/json': {
      body: [
        {
          Id: ID,
          Names: ['/k8s_c_p_n_u_2'],
          Labels: { ...LABELS, 'annotation.io.kubernetes.container.restartCount': '2' },
          State: 'running',
          Created: 1_700_000_000,
        },
        {
          Id: 'c'.repeat(64),
          Names: ['/k8s_POD_p_n_u_0'],
          Labels: { ...LABELS, 'io.kubernetes.docker.type': 'podsandbox' },
          State: 'running',
          Created: 1_700_000_000,
        },
        { Id: 'd'.repeat(64), Names: ['/plain'], Labels: {}, State: 'dead', Created: 1_700_000_000 },
      ],
    },
  });
  const runtime = await DockerRuntime.connect(socket);
  t.same(await runtime.version(), { name: 'docker', version: '26.1.5', protocol: 'docker' });
  t.match(await runtime.list({ podUid: 'u', containerName: 'c' }), [
    {
      id: ID,
      name: 'c',
      pod: { uid: 'u', name: 'p', namespace: 'n' },
      state: 'running',
      attempt: 2,
      createdAtMs: 1_700_000_000_000,
    },
    { name: 'plain', pod: null, state: 'exited', attempt: 0 },
  ]);
  t.match(requests.at(-1), /all=true.*"label":\["io\.kubernetes\.pod\.uid=u","io\.kubernetes\.container\.name=c"\]/);
  runtime.close();
});

test('inspecting a running container returns its first process', async (t) => {
  const inspected = (State: object, labels: object = LABELS) => ({
    body: { Id: ID, Name: '/k8s_c', Created: '2026-01-02T03:04:05.678Z', Config: { Labels: labels }, State },
  });
  const others = { exited: 'c', paused: 'd', sandbox: 'e' } as const;
  const { socket } = await serveDocker(t, {
    ...VERSION,
    [`/containers/${ID}/json`]: inspected({ Status: 'running', Pid: 99 }),
    [`/containers/${others.exited.repeat(64)}/json`]: inspected({ Status: 'exited', Pid: 0 }),
    [`/containers/${others.paused.repeat(64)}/json`]: inspected({ Status: 'paused', Pid: 98 }),
    [`/containers/${others.sandbox.repeat(64)}/json`]: inspected(
      { Status: 'running', Pid: 97 },
      { 'io.kubernetes.docker.type': 'podsandbox' },
    ),
  });
  const runtime = await DockerRuntime.connect(socket);
  t.match(await runtime.inspect(ID), {
    id: ID,
    name: 'c',
    state: 'running',
    pid: 99,
    createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  });
  t.match(await runtime.inspect(others.exited.repeat(64)), { state: 'exited', pid: null });
  t.match(await runtime.inspect(others.paused.repeat(64)), { state: 'running', pid: 98 });
  t.equal(await runtime.inspect(others.sandbox.repeat(64)), null);
  t.equal(await runtime.inspect('f'.repeat(64)), null);
});

test('an invalid id is not sent to the daemon', async (t) => {
  const { socket, requests } = await serveDocker(t, VERSION);
  const runtime = await DockerRuntime.connect(socket);
  const before = requests.length;
  for (const id of ['name', '../images', `${ID}/json?x=`, '']) t.equal(await runtime.inspect(id), null);
  t.equal(requests.length, before);
});

test('a daemon that refuses, one that hangs and one that is absent cause different errors', async (t) => {
  const { socket } = await serveDocker(t, {
    ...VERSION,
    '/containers/json': { code: 500, body: { message: 'broken' } },
    [`/containers/${ID}/json`]: 'never',
  });
  t.equal(await failure((await DockerRuntime.connect(socket)).list()), 'refused');
  const hasty = await eventually(() => DockerRuntime.connect(socket, { timeoutMs: 100 }).catch(() => null));
  t.equal(await failure(hasty.inspect(ID)), 'timeout');
  t.equal(await failure(DockerRuntime.connect(`${socket}.absent`)), 'unavailable');
});
