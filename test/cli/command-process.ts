import { PassThrough } from 'node:stream';
import { gpuManager } from '../../src/cli/gpu-manager.js';
import { kubectlGpu } from '../../src/cli/kubectl/plugin.js';
import type { CommandLine, Ended } from './commands.js';

/** Runs the command lines that its parent sends, one after another; see {@link Commands}. */
const PROGRAMS = { 'gpu-manager': gpuManager, 'kubectl-gpu': kubectlGpu } as const;

process.on('message', (line: CommandLine) => void run(line).then((ended) => process.send?.(ended)));
process.on('disconnect', () => process.exit());

async function run({ program, args, env, directory, input }: CommandLine): Promise<Ended> {
  process.chdir(directory);
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, env);
  const stdin = new PassThrough();
  stdin.end(input);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  const texts = { out: '', err: '' };
  const collect =
    (name: keyof typeof texts) =>
    (chunk: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
      texts[name] += Buffer.from(chunk as string).toString();
      const done = rest.at(-1);
      if (typeof done === 'function') (done as () => void)();
      return true;
    };
  process.stdout.write = collect('out');
  process.stderr.write = collect('err');
  process.exitCode = undefined;
  const code = await PROGRAMS[program](args);
  return { code, ...texts };
}
