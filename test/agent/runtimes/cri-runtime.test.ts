import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { test } from 'tap';
import { RuntimeError } from '../../../src/agent/runtimes/container.js';
import { CriRuntime } from '../../../src/agent/runtimes/cri-runtime.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { NEVER, serveCri, Status } from './fake-cri.js';

const VERSION = {
  Version: () => ({ version: '0.1.0', runtime_name: 'cri-o', runtime_version: '1.31.0', runtime_api_version: 'v1' }),
};
const ID = 'a'.repeat(64);

/** Resolves to the code of the error with which a call is refused. */
function failure(question: Promise<unknown>): Promise<string> {
  return question.then(
    () => 'none',
    (error: unknown) => (error instanceof RuntimeError ? error.code : String(error)),
  );
}

test('a runtime with v1alpha2 only is called in that version', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  const server = await serveCri(socket, 'v1alpha2', VERSION);
  t.teardown(() => server.stop());
  const runtime = await CriRuntime.connect(socket);
  t.same(await runtime.version(), { name: 'cri-o', version: '1.31.0', protocol: 'cri-v1alpha2' });
  runtime.close();
});

test('v1 is preferred', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  const server = await serveCri(socket, 'v1', VERSION);
  t.teardown(() => server.stop());
  const runtime = await CriRuntime.connect(socket);
  t.match(await runtime.version(), { protocol: 'cri-v1' });
  runtime.close();
});

test('containers are translated, and listed by their labels', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  const requests: unknown[] = [];
  const labels = {
    'io.kubernetes.pod.uid': 'u',
    'io.kubernetes.pod.name': 'p',
    'io.kubernetes.pod.namespace': 'n',
    'io.kubernetes.container.name': 'c',
  };
  const server = await serveCri(socket, 'v1', {
    ...VERSION,
    ListContainers: (request) => {
      requests.push(request);
      return {
        containers: [
          {
            id: ID,
            metadata: { name: 'c', attempt: 3 },
            state: 'CONTAINER_EXITED',
            created_at: '1700000000123456789',
            labels,
          },
        ],
      };
    },
  });
  t.teardown(() => server.stop());
  const runtime = await CriRuntime.connect(socket);
  t.same(await runtime.list({ podUid: 'u', containerName: 'c' }), [
    {
      id: ID,
      name: 'c',
      pod: { uid: 'u', name: 'p', namespace: 'n' },
      labels,
      state: 'exited',
      attempt: 3,
      createdAtMs: 1700000000123,
    },
  ]);
  t.match(requests, [
    { filter: { label_selector: { 'io.kubernetes.pod.uid': 'u', 'io.kubernetes.container.name': 'c' } } },
  ]);
  runtime.close();
});

test('the first process is read from the verbose answer, whatever its other fields', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  let info: Record<string, string> = {};
  let state = 'CONTAINER_RUNNING';
  const server = await serveCri(socket, 'v1', {
    ...VERSION,
    ContainerStatus: () => ({ status: { id: ID, metadata: { name: 'c' }, state, labels: {} }, info }),
  });
  t.teardown(() => server.stop());
  const runtime = await CriRuntime.connect(socket);
  const pidOf = async (text: string) => {
    info = { info: text };
    return (await runtime.inspect(ID))?.pid;
  };
  t.equal(await pidOf('{"sandboxID":"x","pid":4711,"runtimeSpec":{}}'), 4711);
  for (const text of ['{}', '{"pid":"4711"}', '{"pid":0}', '{"pid":-1}', '{"pid":1.5}', 'pid: 4711', ''])
    t.equal(await pidOf(text), null, text);
  state = 'CONTAINER_EXITED';
  t.equal(await pidOf('{"pid":4711}'), null, 'a container that ended has no first process');
  runtime.close();
});

test('a container that the runtime does not know is absent, and every other refusal is an error', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  let code = status.NOT_FOUND;
  const server = await serveCri(socket, 'v1', {
    ...VERSION,
    ContainerStatus: () => {
      throw new Status(code);
    },
  });
  t.teardown(() => server.stop());
  const runtime = await CriRuntime.connect(socket);
  t.equal(await runtime.inspect(ID), null);
  code = status.PERMISSION_DENIED;
  t.equal(await failure(runtime.inspect(ID)), 'refused');
  code = status.UNAVAILABLE;
  t.equal(await failure(runtime.inspect(ID)), 'unavailable');
  t.equal(await failure(runtime.list()), 'refused', 'an unimplemented method');
  runtime.close();
});

test('a runtime that is still starting counts as unreachable', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  const starting = () => {
    throw new Status(status.UNKNOWN, 'server is not initialized yet');
  };
  const server = await serveCri(socket, 'v1', { Version: starting });
  t.teardown(() => server.stop());
  t.equal(await failure(CriRuntime.connect(socket)), 'unavailable');
});

test('a call to a runtime that does not answer ends after the time limit', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  const server = await serveCri(socket, 'v1', { ...VERSION, ListContainers: () => NEVER });
  t.teardown(() => server.stop());
  const runtime = await eventually(() => CriRuntime.connect(socket, { timeoutMs: 100 }).catch(() => null));
  t.equal(await failure(runtime.list()), 'timeout');
  runtime.close();
});

test('a socket without a known version, or a file that is not a socket, is refused with its path', async (t) => {
  const scratch = await scratchDirectory(t);
  const socket = join(scratch, 'cri.sock');
  const server = await serveCri(socket, 'v1', {});
  t.teardown(() => server.stop());
  t.equal(await failure(CriRuntime.connect(socket)), 'refused');
  t.equal(await failure(CriRuntime.connect(join(scratch, 'absent.sock'))), 'unavailable');
  await t.rejects(CriRuntime.connect(join(scratch, 'absent.sock')), { message: /absent\.sock/ });
});
