import type { Command } from 'commander';
import { extraFlags } from './extra-flags.js';
import { newProgram, runProgram } from './program.js';

/**
 * Loaders of the commands, in the order of the help. Only the requested command is loaded, because all modules of the
 * agent take half a second.
 */
const COMMANDS: Readonly<Record<string, (program: Command) => Promise<Command>>> = {
  run: async () => (await import('./run.js')).runCommand(),
  graph: async () => (await import('./graph.js')).graphCommand(),
  usage: async () => (await import('./usage.js')).usageCommand(),
  top: async () => (await import('./top.js')).topCommand(),
  limits: async () => (await import('./limits.js')).limitsCommand(),
  health: async () => (await import('./health.js')).healthCommand(),
  events: async () => (await import('./events.js')).eventsCommand(),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
  version: async () => (await import('./version.js')).versionCommand(),
  demo: async () => (await import('./demo.js')).demoCommand(),
  topology: async () => (await import('./topology.js')).topologyCommand(),
  'plugin-proxy': async () => (await import('./plugin-proxy.js')).pluginProxyCommand(),
  extender: async () => (await import('./extender.js')).extenderCommand(),
  'claim-webhook': async () => (await import('./claim-webhook.js')).claimWebhookCommand(),
  console: async () => (await import('./console.js')).consoleCommand(),
  quota: async () => (await import('./quota.js')).quotaCommand(),
  completion: async (program) => (await import('./completion.js')).completionCommand(() => program),
};
/** The command if none is named, as in the original; at a terminal, the help is printed instead. */
const DEFAULT = 'run';

const HELP = new Set(['-h', '--help']);

/** The commands to load: the named one; all of them for help, completion and unknown names. */
function needed([first]: readonly string[]): readonly string[] {
  if (first === undefined) return process.stdin.isTTY && process.stdout.isTTY ? Object.keys(COMMANDS) : [DEFAULT];
  if (first.startsWith('-') && !HELP.has(first)) return [DEFAULT];
  return first in COMMANDS && first !== 'completion' ? [first] : Object.keys(COMMANDS);
}

/** Runs `gpu-manager ARGV...` and returns its exit code. */
export async function gpuManager(argv: readonly string[]): Promise<number> {
  return runProgram(await gpuManagerProgram(argv), withExtraFlags(argv.map(normalise)));
}

/** The program with the commands that `argv` needs; with all of them for `--help`. */
export async function gpuManagerProgram(argv: readonly string[]): Promise<Command> {
  const program = newProgram('gpu-manager', 'Share GPUs between containers in Kubernetes');
  const names = needed(argv);
  for (const name of names) {
    const command = await COMMANDS[name]?.(program);
    // If all commands are registered, none is the default: an unknown word is an error, not an argument of the default
    // command.
    if (command !== undefined) program.addCommand(command, { isDefault: names.length === 1 && name === DEFAULT });
  }
  return program;
}

/** EXTRA_FLAGS applies only to the agent. It is applied last, so its values take precedence. */
function withExtraFlags(argv: readonly string[]): readonly string[] {
  const isAgent =
    needed(argv)[0] === DEFAULT && !argv.some((argument) => HELP.has(argument) || argument === '--version');
  return isAgent ? [...argv, ...extraFlags(process.env).map(normalise)] : argv;
}

/** The original accepts underscores instead of dashes in flag names. */
function normalise(argument: string): string {
  const [name, ...value] = argument.split('=');
  if (name?.startsWith('--') !== true) return argument;
  if (argument === '--version=true' || argument === '--version=raw') return '--version';
  return [name.replaceAll('_', '-'), ...value].join('=');
}
