import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { RuntimeError } from '../../../src/agent/runtimes/container.js';
import { NodeContainers } from '../../../src/agent/runtimes/node-containers.js';
import { scratchDirectory } from '../../scratch.js';
import { CONTAINERD_PROGRAMS, ContainerdEngine, criSkipReason } from './containerd-engine.js';
import { daemonSkipReason } from './daemon.js';
import { DOCKER_PROGRAMS, DockerEngine } from './docker-engine.js';
import type { Engine } from './engine.js';
import { imageSkipReason } from './test-image.js';

const POD = { uid: '3ac45a1e-0d2f-4c6b-9a7e-1f2d3c4b5a60', namespace: 'default', name: 'trainer' };

/** The contract of every runtime, run against the real ones. */
function contract(engine: Engine, programs: readonly string[], unable: string | false = false): void {
  const skip = daemonSkipReason(...programs) || imageSkipReason() || unable;
  test(`${engine.name}: containers are found by process and by pod`, { skip }, async (t) => {
    const scratch = await scratchDirectory(t);
    t.teardown(() => engine.stop());
    await engine.start(scratch);
    const containers = new NodeContainers({ connect: () => engine.connect() });
    t.teardown(() => containers.close());

    const sleeper = await engine.run({
      pod: POD,
      name: 'sleeper',
      command: ['/bin/sh', '-c', 'sleep 1001 & sleep 1002 & wait'],
    });
    const other = await engine.run({ pod: POD, name: 'other', command: ['/bin/sleep', '1003'] });

    await t.test('the runtime reports its name and version', async (t) => {
      const version = await containers.version();
      t.match(version, { name: engine.name.split(' ')[0], version: /^v?\d+\.\d+/ });
    });

    await t.test('a container is found by pod and name, with labels, state and first process', async (t) => {
      const found = await containers.ofPod({ podUid: POD.uid, containerName: 'sleeper' });
      t.match(found, {
        id: sleeper,
        name: 'sleeper',
        pod: POD,
        state: 'running',
        attempt: 0,
        labels: { 'io.kubernetes.container.name': 'sleeper' },
      });
      t.ok((found?.pid ?? 0) > 1);
      t.ok(Math.abs((found?.createdAtMs ?? 0) - Date.now()) < 600_000);
      t.match(await containers.ofPod({ namespace: POD.namespace, podName: POD.name, containerName: 'other' }), {
        id: other,
      });
      t.equal(await containers.ofPod({ podUid: 'another', containerName: 'sleeper' }), null);
      t.equal(await containers.ofPod({ podUid: POD.uid, containerName: 'absent' }), null);
    });

    await t.test('a container is found by any of its processes, and its processes by the container', async (t) => {
      const pids = await containers.pids(sleeper);
      t.equal(pids.length, 3, 'a shell and two programs');
      for (const pid of pids) t.match(await containers.ofPid(pid), { id: sleeper, pod: POD });
      t.equal(await containers.ofPid(process.pid), null);
      t.equal(
        await containers.ofPid(Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'))),
        null,
        'a process that does not exist',
      );
    });

    await t.test('a second process that exec started is one of its processes', async (t) => {
      const { output, code } = await engine.exec(sleeper, [
        '/bin/sh',
        '-c',
        '(sleep 1004 > /dev/null 2>&1 &) ; echo started',
      ]);
      t.same({ output, code }, { output: 'started\n', code: 0 });
      t.equal((await containers.pids(sleeper)).length, 4);
    });

    await t.test('processes are found where the control groups of the machine are not mounted', async (t) => {
      const blind = new NodeContainers({ connect: () => engine.connect(), cgroups: scratch });
      t.same(await blind.pids(sleeper), await containers.pids(sleeper));
      blind.close();
    });

    await t.test('all containers are listed, and no sandbox', async (t) => {
      t.same((await containers.list()).map((container) => container.id).sort(), [other, sleeper].sort());
      t.same(
        (await containers.list({ containerName: 'other' })).map((container) => container.id),
        [other],
      );
      t.equal(await containers.inspect('f'.repeat(64)), null);
      t.equal(await containers.inspect('../containers'), null);
    });

    await t.test('the next call after a restart of the daemon succeeds', async (t) => {
      await engine.restart();
      t.match(await containers.inspect(sleeper), { id: sleeper, state: 'running' });
    });

    await t.test('an ended container is reported as ended, and has no processes', async (t) => {
      await engine.end(other);
      t.match(await containers.inspect(other), { id: other, state: 'exited', pid: null });
      t.same(await containers.pids(other), []);
    });

    await t.test('the caller gets an error while the daemon is stopped', async (t) => {
      await engine.halt();
      const error: unknown = await containers.list().then(
        () => null,
        (failure: unknown) => failure,
      );
      t.ok(error instanceof RuntimeError && error.code === 'unavailable');
      await engine.restart();
      t.match(await containers.inspect(sleeper), { id: sleeper });
    });
  });
}

contract(new DockerEngine(), DOCKER_PROGRAMS);
contract(new ContainerdEngine('v1'), CONTAINERD_PROGRAMS);
contract(new ContainerdEngine('v1alpha2'), CONTAINERD_PROGRAMS, criSkipReason('v1alpha2'));
