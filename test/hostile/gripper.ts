import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scratchDirectory } from '../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const source = fileURLToPath(new URL('../../../test/hostile/grip.c', import.meta.url));

/** The reason why files cannot be held as root in a container would; false where they can. */
export const gripSkipReason: string | false =
  process.getuid?.() !== 0
    ? 'leases on files of root need root'
    : spawnSync('cc', ['--version']).status !== 0
      ? 'there is no C compiler'
      : false;

export interface Grip {
  readonly program: string;
  /** Runs `grip`, or another program in the same way, and returns what it prints: `held`, `refused`, `cannot open`. */
  take(args: readonly string[], program?: string): Promise<string>;
}

export async function gripper(t: Teardown): Promise<Grip> {
  const program = join(await scratchDirectory(t), 'grip');
  execFileSync('cc', ['-O1', '-static', '-Wall', '-o', program, source]);
  return {
    program,
    async take(args, path = program) {
      const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'] });
      await once(child, 'spawn');
      const gone = once(child, 'exit');
      t.teardown(async () => {
        child.kill('SIGKILL');
        await gone;
      });
      for await (const line of createInterface({ input: child.stdout })) return line;
      return 'ended';
    },
  };
}
