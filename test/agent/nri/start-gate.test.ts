import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import type { Driver, GroupLimited } from '../../../src/agent/gpus/driver.js';
import type { ControlGroups } from '../../../src/agent/runtimes/index.js';
import { nriSkipReason } from './containerd2.js';
import { nodeWith, preparedPod, startedEngine } from './runtime-setting.js';

const ROOT = '/sys/fs/cgroup';

/** Folder of a group in the hierarchy that the runtime uses: version 2, or version 1 with its memory controller. */
const folderOf = (path: string): string | null =>
  ['', 'memory', 'unified'].map((mount) => join(ROOT, mount, path)).find((folder) => existsSync(folder)) ?? null;

/** Names of the processes in a group. */
function programsIn(folder: string): readonly string[] {
  const pids = readFileSync(join(folder, 'cgroup.procs'), 'utf8')
    .split('\n')
    .filter((pid) => pid !== '');
  return pids.map((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
}

test(
  'when containerd announces the start of a container, its control group exists, and its program has not begun',
  { skip: nriSkipReason() },
  async (t) => {
    const description = JSON.stringify({ driverVersion: '615.10', gpus: [{}] });
    const parsed = parseSimNode(description);
    if (!parsed.ok) throw new Error(parsed.reason);
    const seen: (readonly string[])[] = [];
    const groupLimiter: Driver['groupLimiter'] = {
      problem: async () => null,
      set: async (_uuid, group): Promise<GroupLimited> => {
        seen.push(programsIn(group));
        return 'set';
      },
      get: async () => 'none',
    };
    const driver = Object.assign(new SimDriver(parsed.node), { groupLimiter }) as Driver;
    const named: string[] = [];
    const groups: ControlGroups = {
      problem: null,
      root: ROOT,
      hasGpuMemory: () => false,
      ofProcess: () => null,
      ofContainer: async () => null,
      ofPod: () => null,
      named(path) {
        named.push(path);
        return folderOf(path);
      },
      exists: (path) => existsSync(path),
    };
    const engine = await startedEngine(t);
    const node = await nodeWith(t, engine, { gpus: description, seams: { driver, groups } });
    const { pod, spec } = await preparedPod(node.kubelet);
    const id = await engine.run(spec);
    t.match(named.at(-1), id, `the runtime names the group of a container of ${pod.name}`);
    t.match(seen[0], [/^runc:\[2:INIT\]/], 'the process that becomes the program waits');
  },
);
