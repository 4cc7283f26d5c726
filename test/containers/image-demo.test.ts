import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { OWN_CONFIG } from '../agent/runtimes/test-image.js';
import { scratchDirectory } from '../scratch.js';
import { nativeSkipReason } from './simulated-host.js';

const ROOTFS = fileURLToPath(new URL('../../../scripts/image-rootfs', import.meta.url));
/** An address of the container that is not its loopback address, as a published port leads to. */
const ADDRESS = '192.0.2.1';

/** Runs `$@` in the root file system `$0` with network, /proc and /tmp of its own, as a container runtime does. */
const CONTAINER = `
set -e
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/tmp"
mount --rbind /dev "$0/dev"
ip link set lo up
ip address add ${ADDRESS}/32 dev lo
exec chroot "$0" /usr/bin/env -i "$@"
`;
const NAMESPACES = ['--mount', '--pid', '--net', '--uts', '--fork', '--kill-child'];

function skipReason(): string | false {
  if (process.getuid?.() !== 0) return 'a root file system of its own needs root';
  if (spawnSync('unshare', [...NAMESPACES, 'ip', 'link']).status !== 0)
    return 'needs namespaces of its own (util-linux) and iproute2';
  return nativeSkipReason();
}

test(
  'docker run IMAGE demo: every step passes, and published ports reach the page and the console',
  { skip: skipReason() },
  async (t) => {
    const root = join(await scratchDirectory(t), 'image');
    execFileSync(ROOTFS, [root], { stdio: 'ignore' });
    const command = [...OWN_CONFIG.Env, ...(OWN_CONFIG.Entrypoint ?? []), 'demo'];
    const container = spawn('unshare', [...NAMESPACES, 'bash', '-c', CONTAINER, root, ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.teardown(() => container.kill('SIGKILL'));
    let errors = '';
    container.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const exited = once(container, 'exit');
    const steps: string[] = [];
    let printed = '';
    for await (const line of createInterface({ input: container.stdout })) {
      if (/^(ok|FAILED) /.test(line)) steps.push(line);
      else printed += `${line}\n`;
      if (line.startsWith('Ctrl-C')) break;
    }
    t.equal(errors, '');
    t.ok(steps.length >= 25, `${steps.length} steps`);
    t.match(steps.at(-1), /^ok +all pods with claims end, and nothing of them is left/);
    t.same(
      steps.filter((line) => !line.startsWith('ok ')),
      [],
    );
    t.match(printed, /^The page of the node: http:\/\/localhost:5678$/m);
    t.match(printed, /^ {2}docker exec -it \S+ gpu-manager top --display-socket \S+$/m);

    for (const port of [5678, 5680]) {
      const ask = `fetch('http://${ADDRESS}:${port}/').then((answer) => answer.text()).then(console.log, console.error)`;
      const inNetwork = ['--target', String(container.pid), '--net', process.execPath, '-e', ask];
      t.match(execFileSync('nsenter', inNetwork, { encoding: 'utf8' }), /<html/);
    }

    // Process 1 of the container, as "docker stop" signals it.
    const first = readFileSync(`/proc/${container.pid}/task/${container.pid}/children`, 'utf8');
    process.kill(Number(first), 'SIGTERM');
    t.same(await exited, [0, null]);
  },
);
