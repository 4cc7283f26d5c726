import { createServer } from 'node:http';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { RuntimeError } from '../../../src/agent/runtimes/container.js';
import { connectRuntime, parseEndpoint } from '../../../src/agent/runtimes/endpoint.js';
import { scratchDirectory } from '../../scratch.js';
import { serveCri } from './fake-cri.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const POD_LABELS = { 'io.kubernetes.pod.uid': 'u' };

async function cri(t: Teardown, socket: string, name: string, pods: boolean): Promise<void> {
  const containers = pods ? [{ id: 'a'.repeat(64), metadata: { name: 'c' }, labels: POD_LABELS }] : [];
  const server = await serveCri(socket, 'v1', {
    Version: () => ({ runtime_name: name, runtime_version: '1' }),
    ListContainers: () => ({ containers }),
  });
  t.teardown(async () => server.stop());
}

async function docker(t: Teardown, socket: string, pods: boolean): Promise<void> {
  const containers = pods
    ? [{ Id: 'b'.repeat(64), Names: ['/x'], Labels: POD_LABELS, State: 'running', Created: 1 }]
    : [];
  const server = createServer((request, response) =>
    response.end(JSON.stringify(request.url?.startsWith('/version') === true ? { Version: '26' } : containers)),
  );
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
}

test('endpoints are unix sockets, with or without the scheme', (t) => {
  for (const endpoint of ['/run/x.sock', 'unix:///run/x.sock', 'unix:/run/x.sock'])
    t.same(parseEndpoint(endpoint), { ok: true, path: '/run/x.sock' });
  for (const endpoint of ['tcp://1.2.3.4:2375', 'npipe:////./pipe/docker', 'run/x.sock', ''])
    t.match(parseEndpoint(endpoint), { ok: false, code: 'no-unix-socket' });
  t.end();
});

test('a configured endpoint is the only one that is tried', async (t) => {
  const scratch = await scratchDirectory(t);
  await cri(t, join(scratch, 'containerd.sock'), 'containerd', true);
  await docker(t, join(scratch, 'docker.sock'), false);
  const options = { criEndpoints: [join(scratch, 'containerd.sock')], dockerEndpoints: [] };
  const named = await connectRuntime({ ...options, dockerEndpoint: `unix://${join(scratch, 'docker.sock')}` });
  t.match(await named.version(), { name: 'docker' });
  const other = await connectRuntime({
    dockerEndpoints: [join(scratch, 'docker.sock')],
    criEndpoint: join(scratch, 'containerd.sock'),
  });
  t.match(await other.version(), { name: 'containerd' });
  other.close();
  await t.rejects(connectRuntime({ ...options, criEndpoint: join(scratch, 'absent.sock') }), {
    name: 'RuntimeError',
    message: /absent\.sock/,
  });
  await t.rejects(connectRuntime({ ...options, criEndpoint: 'tcp://1.2.3.4:5' }), { message: /is not a unix socket/ });
});

test('of several runtimes the one that runs pods is used, or the first that answers where none does', async (t) => {
  for (const { containerd, dockerd, expected } of [
    { containerd: true, dockerd: false, expected: 'containerd' },
    { containerd: false, dockerd: true, expected: 'docker' },
    { containerd: false, dockerd: false, expected: 'containerd' },
  ]) {
    const scratch = await scratchDirectory(t);
    await cri(t, join(scratch, 'containerd.sock'), 'containerd', containerd);
    await docker(t, join(scratch, 'docker.sock'), dockerd);
    const runtime = await connectRuntime({
      criEndpoints: [join(scratch, 'containerd.sock')],
      dockerEndpoints: [join(scratch, 'docker.sock')],
    });
    t.match(await runtime.version(), { name: expected });
    runtime.close();
  }
});

test('a path without a socket, or another name of the same socket, is skipped', async (t) => {
  const scratch = await scratchDirectory(t);
  const socket = join(scratch, 'crio.sock');
  await cri(t, socket, 'cri-o', false);
  symlinkSync(socket, join(scratch, 'link.sock'));
  writeFileSync(join(scratch, 'file.sock'), '');
  const runtime = await connectRuntime({
    criEndpoints: ['file.sock', 'link.sock', 'crio.sock', 'absent.sock'].map((name) => join(scratch, name)),
    dockerEndpoints: [],
  });
  t.match({ endpoint: runtime.endpoint }, { endpoint: socket });
  runtime.close();
});

test('without any runtime the error lists the endpoints that were tried', async (t) => {
  const error: unknown = await connectRuntime({ criEndpoints: ['/nonexistent/a.sock'], dockerEndpoints: [] }).then(
    () => null,
    (failure: unknown) => failure,
  );
  t.ok(error instanceof RuntimeError && error.code === 'unavailable');
  t.match(error, { message: /any known socket: none of them exists/ });
});
