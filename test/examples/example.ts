import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export interface ExampleRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of `examples/`; `onStart` gets its process id. */
export async function runExample(
  name: string,
  args: readonly string[],
  onStart: (pid: number) => void = () => undefined,
): Promise<ExampleRun> {
  const program = fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  if (child.pid !== undefined) onStart(child.pid);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, stdout, stderr };
}
