import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scratchDirectory } from '../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

/** What the attacked program has used so far. */
export interface ProgramUsage {
  readonly cpuUs: number;
  readonly peakBytes: number;
  /** What the program holds now, without what it has freed. */
  readonly heldBytes: number;
  /** Errors that the program logged. */
  readonly failures: number;
}

/** A program with parts of the agent that a test attacks. */
export interface UnderAttack {
  usage(): Promise<ProgramUsage>;
  /** How the program ended, or null while it runs. */
  ended(): string | null;
}

export interface Besieged extends UnderAttack {
  /** `vcuda.sock` of the slice with this number. */
  socketOf(slice?: number): string;
  readonly displaySocket: string;
}

/** Starts the agent's sockets in a process of their own. */
export async function besieged(t: Teardown, options: { slices?: number; unlimited?: boolean } = {}): Promise<Besieged> {
  const base = join(await scratchDirectory(t), 'vm');
  const limit = options.unlimited === true ? ['unlimited'] : [];
  const program = await underAttack(t, 'socket-program.js', [base, String(options.slices ?? 1), ...limit]);
  return {
    ...program,
    socketOf: (slice = 0) => join(base, slice.toString(16).padStart(16, '0'), 'vcuda.sock'),
    displaySocket: join(base, 'display.sock'),
  };
}

/**
 * Starts a program that obeys orders in a process of its own: its end does not end the test, and its usage is measured
 * separately.
 */
export async function underAttack(t: Teardown, name: string, args: readonly string[]): Promise<UnderAttack> {
  const program = fileURLToPath(new URL(`./${name}`, import.meta.url));
  const child = spawn(process.execPath, ['--expose-gc', program, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  let end: string | null = null;
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Record<string, unknown>> => {
    const line = await lines.next();
    if (line.done === true) throw new Error(`the program under attack ended: ${child.signalCode ?? child.exitCode}`);
    const answer = JSON.parse(line.value) as Record<string, unknown>;
    if ('uncaught' in answer) {
      end = String(answer.uncaught);
      throw new Error(`the program under attack ended: ${end}`);
    }
    return answer;
  };
  child.once('exit', (code, signal) => (end ??= String(signal ?? code)));
  await next();
  return {
    async usage() {
      child.stdin.write('usage\n');
      return (await next()) as unknown as ProgramUsage;
    },
    ended: () => end,
  };
}

/**
 * Connects, writes each element of `writes` separately, and resolves when the peer has closed or `patienceMs` have
 * passed.
 */
export async function attack(path: string, writes: readonly Buffer[], patienceMs: number): Promise<void> {
  const socket = connect(path);
  socket.on('error', () => undefined);
  socket.resume();
  for (const bytes of writes) await written(socket, bytes);
  await Promise.race([
    socket.destroyed ? Promise.resolve() : once(socket, 'close').catch(() => undefined),
    new Promise((resolve) => setTimeout(resolve, patienceMs)),
  ]);
  socket.destroy();
}

function written(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.write(bytes, () => resolve());
  });
}
