import type { Command } from 'commander';
import { DEFAULT_COMMAND, declaredArguments, namedCommand } from './command-line.js';
import { addExamples, GPU_MANAGER_EXAMPLES } from './examples.js';
import { newGpuManager, runProgram } from './program.js';

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
  suspend: async () => (await import('./suspend.js')).suspendCommand(),
  resume: async () => (await import('./suspend.js')).resumeCommand(),
  health: async () => (await import('./health.js')).healthCommand(),
  events: async () => (await import('./events.js')).eventsCommand(),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
  'plugin-proxy': async () => (await import('./plugin-proxy.js')).pluginProxyCommand(),
  extender: async () => (await import('./extender.js')).extenderCommand(),
  'claim-webhook': async () => (await import('./claim-webhook.js')).claimWebhookCommand(),
  console: async () => (await import('./console.js')).consoleCommand(),
  quota: async () => (await import('./quota.js')).quotaCommand(),
  demo: async () => (await import('./demo.js')).demoCommand(),
  convert: async () => (await import('./convert.js')).convertCommand(),
  topology: async () => (await import('./topology.js')).topologyCommand(),
  version: async () => (await import('./version.js')).versionCommand(),
  completion: async (program) => (await import('./completion.js')).completionCommand(() => program),
};

/** Headings of the help, and the commands below each. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'On a node:': [
    'run',
    'graph',
    'usage',
    'top',
    'limits',
    'suspend',
    'resume',
    'health',
    'events',
    'doctor',
    'plugin-proxy',
  ],
  'In a cluster:': ['extender', 'claim-webhook', 'console', 'quota'],
  'Without a cluster:': ['demo', 'convert', 'topology'],
};

const OTHER_COMMANDS = 'This program:';

const groupOf = (name: string): string =>
  Object.keys(GROUPS).find((title) => GROUPS[title]?.includes(name) === true) ?? OTHER_COMMANDS;

/** The commands to load: the named one; all of them for help, completion and unknown names. */
function needed(argv: readonly string[]): readonly string[] {
  const named = namedCommand(argv);
  return named !== null && named in COMMANDS && named !== 'completion' ? [named] : Object.keys(COMMANDS);
}

/** Runs `gpu-manager ARGV...` and returns its exit code. */
export async function gpuManager(argv: readonly string[]): Promise<number> {
  return runProgram(await gpuManagerProgram(argv), declaredArguments(argv));
}

/** The program with the commands that `argv` needs; with all of them for `--help`. */
export async function gpuManagerProgram(argv: readonly string[]): Promise<Command> {
  const program = newGpuManager().commandsGroup(OTHER_COMMANDS);
  const names = needed(argv);
  for (const name of names) {
    const command = await COMMANDS[name]?.(program);
    // If all commands are registered, none is the default: an unknown word is an error, not an argument of the default
    // command.
    if (command !== undefined)
      program.addCommand(command.helpGroup(groupOf(name)), {
        isDefault: names.length === 1 && name === DEFAULT_COMMAND,
      });
  }
  addExamples(program, GPU_MANAGER_EXAMPLES);
  return program;
}
