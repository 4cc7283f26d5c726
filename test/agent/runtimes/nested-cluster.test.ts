import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { parseProcCgroup } from '../../../src/agent/runtimes/cgroup-path.js';
import { eventually } from '../../harness/eventually.js';
import { cgroupTree, controlGroups2, moveTo, OciRuntime, ociSkipReason } from './oci-runtime.js';

const OUTER_POD = randomUUID();
const POD = randomUUID();
const AGENT_POD = randomUUID();
const id = (digit: string): string => digit.repeat(64);

// A file of its own: the control group of this process, the agent here, is read once.
test(
  'in a cluster inside a pod, containers and processes are those of the inner pods',
  { skip: ociSkipReason('runc') },
  async (t) => {
    const tree = cgroupTree(t);
    const place = parentOf(readFileSync('/proc/self/cgroup', 'utf8'));
    t.teardown(() => moveTo(place, process.pid));
    const runtime = await OciRuntime.start(t, 'runc');
    const outer = `${tree}/kubepods/pod${OUTER_POD}/${id('f')}`;
    moveTo(`${outer}/kubepods/besteffort/pod${AGENT_POD}/${id('e')}`, process.pid);

    const run = (digit: string, cgroup: string) =>
      runtime.run({ id: id(digit), podUid: POD, cgroup, command: ['/bin/sh', '-c', 'sleep 1001 & wait'] });
    const inner = run('1', `${outer}/kubepods/burstable/pod${POD}/${id('1')}`);
    const beside = run('2', `${tree}/kubepods/pod${POD}/${id('2')}`);
    const containers = runtime.containers();
    const pids = await eventually(async () => {
      const found = await containers.pids(id('1'));
      return found.length === 2 && found;
    });
    t.ok(pids.includes(inner.pid ?? 0));
    for (const pid of pids) t.match(await containers.ofPid(pid), { id: id('1') });
    const pidsByPod = await containers.pidsByPod();
    t.notOk(pidsByPod.has(OUTER_POD), 'the outer pod is none of this cluster');
    t.same(pidsByPod.get(AGENT_POD), [process.pid]);
    t.match(parseProcCgroup(readFileSync(`/proc/${inner.pid}/cgroup`, 'utf8')), { podUid: OUTER_POD });
    t.match(await containers.ofPid(beside.pid ?? 0), { id: id('2') }, 'a container outside of the cluster');
  },
);

/** The control group in the hierarchy that `moveTo` uses. */
function parentOf(ownText: string): string {
  const pattern = controlGroups2 ? /^0::(.*)$/m : /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m;
  return pattern.exec(ownText)?.[1] ?? '/';
}
