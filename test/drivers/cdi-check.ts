import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { NotInstallable } from '../clients/workshop.js';
import type { Check } from './checks.js';

interface CdiSpecification {
  readonly kind: string;
  readonly containerEdits: { readonly mounts?: readonly { readonly hostPath: string }[] };
}

const DEVICES = ['nvidia0', 'nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools'];

/** The specification that NVIDIA's tool makes for a host, beside the mirror of the same host. */
export const cdiCheck: Check = {
  title: 'the mirror has every file of the driver that nvidia-ctk mounts',
  run(machine, workshop) {
    const faults: string[] = [];
    let compared = 0;
    let tool: string;
    try {
      tool = join(
        workshop.go('nvidia-ctk', ['github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk']),
        'nvidia-ctk',
      );
    } catch (error) {
      if (!(error instanceof NotInstallable)) throw error;
      return Promise.resolve({ faults: [], done: '', skipped: error.message });
    }
    for (const [layout, host] of machine.hosts) {
      if (!makeDevices(join(host, 'dev')))
        return Promise.resolve({
          faults: [],
          done: '',
          skipped: 'this user may not make device nodes, which nvidia-ctk needs',
        });
      const args = ['--quiet', 'cdi', 'generate', '--mode=management', '--format=json', `--driver-root=${host}`];
      const printed = machine.run('alone', [tool, ...args, '--nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook']);
      if (printed.status !== 0) {
        faults.push(`${layout.name}: nvidia-ctk: ${printed.stderr.trim().split('\n').at(-1) ?? ''}`);
        continue;
      }
      const specification = JSON.parse(printed.stdout) as CdiSpecification;
      const mirror = machine.mirrors.get(layout) ?? '';
      const files = ['lib64', 'bin'].flatMap((folder) =>
        existsSync(join(mirror, folder)) ? readdirSync(join(mirror, folder)) : [],
      );
      const mounted = (specification.containerEdits.mounts ?? []).map(({ hostPath }) => basename(hostPath));
      compared += mounted.length;
      if (mounted.length === 0) faults.push(`${layout.name}: nvidia-ctk mounts nothing`);
      for (const name of mounted)
        if (!files.includes(name)) faults.push(`${layout.name}: ${name} is not in the mirror`);
      if (specification.kind === 'tencent.com/vcuda') faults.push(`${layout.name}: the kinds are the same`);
    }
    return Promise.resolve({ faults, done: `${compared} files on ${machine.hosts.size} hosts` });
  },
};

/** Makes device nodes with the names of a GPU's, all of them the null device; false if this user may not. */
function makeDevices(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  return DEVICES.every((name) => spawnSync('mknod', [join(folder, name), 'c', '1', '3']).status === 0);
}
