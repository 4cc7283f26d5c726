import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { parseProcCgroup } from '../../../src/agent/runtimes/cgroup-path.js';
import { eventually } from '../../harness/eventually.js';
import { cgroupDirectory, cgroupTree, controlGroups2, moveTo, OciRuntime, ociSkipReason } from './oci-runtime.js';

const OUTER = 'f'.repeat(64);
const id = (digit: number): string => String(digit).repeat(64);

/** The control group of a container, as kubelets and container runtimes name it below the root of a kubelet. */
const NAMES: readonly [string, (uid: string, id: string) => string, 'cgroupfs' | 'systemd'][] = [
  ['cgroupfs', (uid, id) => `kubepods/burstable/pod${uid}/${id}`, 'cgroupfs'],
  ['cgroupfs with cri-o', (uid, id) => `kubepods/burstable/pod${uid}/crio-${id}`, 'cgroupfs'],
  [
    'systemd',
    (uid, id) =>
      `kubepods.slice/kubepods-burstable.slice/${slice('kubepods-burstable', uid)}/cri-containerd-${id}.scope`,
    'systemd',
  ],
  [
    'systemd with cri-o and crun, one level deeper',
    (uid, id) => `kubepods.slice/${slice('kubepods', uid)}/crio-${id}.scope/container`,
    'systemd',
  ],
  [
    'containerd with cgroupfs under a kubelet with systemd',
    (uid, id) => `${slice('kubepods-burstable', uid)}:cri-containerd:${id}`,
    'systemd',
  ],
  ['a cluster in a container', (uid, id) => `docker/${OUTER}/kubelet/kubepods/burstable/pod${uid}/${id}`, 'cgroupfs'],
];

const slice = (parent: string, uid: string): string => `${parent}-pod${uid.replaceAll('-', '_')}.slice`;

for (const program of ['runc', 'crun'] as const)
  test(`containers and processes are found: ${program}`, { skip: ociSkipReason(program) }, async (t) => {
    const tree = cgroupTree(t);
    const runtime = await OciRuntime.start(t, program);
    const other = randomUUID();
    const otherCgroup = `${tree}/kubepods/pod${other}/${id(9)}`;
    runtime.run({ id: id(9), podUid: other, cgroup: otherCgroup, command: ['/bin/sleep', '1003'] });
    const containers = runtime.containers();
    for (const [index, [description, path, driver]] of NAMES.entries())
      await t.test(description, async (t) => {
        const podUid = randomUUID();
        const cgroup = `${tree}/${path(podUid, id(index))}`;
        const command = ['/bin/sh', '-c', 'sleep 1001 & sleep 1002 & wait'];
        const container = runtime.run({ id: id(index), podUid, cgroup, command });
        t.teardown(() => runtime.end(id(index)));

        const place = parseProcCgroup(readFileSync(`/proc/${container.pid}/cgroup`, 'utf8'));
        t.match(place, { containerId: id(index), podUid, driver });
        t.equal(place?.controllers === null, controlGroups2);
        const pids = await eventually(async () => {
          const found = await containers.pids(id(index));
          return found.length === 3 && found;
        });
        t.same((await containers.pidsByPod()).get(podUid), pids, 'the pod has these processes and no others');
        for (const pid of pids) t.match(await containers.ofPid(pid), { id: id(index) });

        runtime.exec(id(index), ['/bin/sleep', '1004']);
        t.equal((await containers.pids(id(index))).length, 4, 'with a process that exec started');

        moveTo(`${cgroup}/kubepods/pod11111111-0000-0000-0000-000000000000/${OUTER}`, pids[1] ?? 0);
        t.equal((await containers.pids(id(index))).length, 4, 'with a process that pretends to be of another pod');
        t.match(await containers.ofPid(pids[1] ?? 0), { id: id(index) });
      });
  });

test(
  'a process in a threaded control group is still one of its container',
  { skip: ociSkipReason('runc') || (controlGroups2 ? false : 'needs control groups v2: npm run test:cgroup2') },
  async (t) => {
    const tree = cgroupTree(t);
    const runtime = await OciRuntime.start(t, 'runc');
    const podUid = randomUUID();
    const cgroup = `${tree}/kubepods/burstable/pod${podUid}/${id(1)}`;
    const { pid } = runtime.run({ id: id(1), podUid, cgroup, command: ['/bin/sleep', '1001'] });
    const threads = join(cgroupDirectory(cgroup), 'threads');
    mkdirSync(threads);
    writeFileSync(join(threads, 'cgroup.type'), 'threaded');
    writeFileSync(join(threads, 'cgroup.threads'), String(pid));
    t.match(readFileSync(`/proc/${pid}/cgroup`, 'utf8'), /\/threads$/m);
    const containers = runtime.containers();
    t.same(await containers.pids(id(1)), [pid]);
    t.match(await containers.ofPid(pid ?? 0), { id: id(1) });
  },
);
