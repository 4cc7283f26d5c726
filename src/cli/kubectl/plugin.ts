import type { Command } from 'commander';
import { addExamples, KUBECTL_EXAMPLES } from '../examples.js';
import { newProgram, runProgram } from '../program.js';

const COMPLETE = '__complete';

/** Loaders of the commands, in the order of the help; only the requested command is loaded. */
const COMMANDS: Readonly<Record<string, (program: Command) => Promise<Command>>> = {
  top: async () => (await import('./top.js')).topCommand(),
  nodes: async () => (await import('./nodes.js')).nodesCommand(),
  pods: async () => (await import('./pods.js')).podsCommand(),
  idle: async () => (await import('./idle.js')).idleCommand(),
  usage: async () => (await import('./usage.js')).usageCommand(),
  throttling: async () => (await import('./throttling.js')).throttlingCommand(),
  claims: async () => (await import('./claims.js')).claimsCommand(),
  describe: async () => (await import('./describe.js')).describeCommand(),
  explain: async () => (await import('./explain.js')).explainCommand(),
  limits: async () => (await import('./limits.js')).limitsCommand(),
  suspend: async () => (await import('./suspend.js')).suspendCommand(),
  resume: async () => (await import('./suspend.js')).resumeCommand(),
  events: async () => (await import('./events.js')).eventsCommand(),
  quota: async () => (await import('./quota.js')).quotaCommand(),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
  [COMPLETE]: async (program) => (await import('./complete.js')).completeCommand(() => program),
};

/** Runs `kubectl gpu ARGV...` and returns its exit code. */
export async function kubectlGpu(argv: readonly string[]): Promise<number> {
  return runProgram(await kubectlGpuProgram(argv), argv);
}

/** The program with the commands that `argv` needs; with all of them for `--help`. */
export async function kubectlGpuProgram(argv: readonly string[]): Promise<Command> {
  const program = newProgram('kubectl gpu', 'See and share the GPUs of a cluster, through its API server');
  const [first = ''] = argv;
  const names = first in COMMANDS && first !== COMPLETE ? [first] : Object.keys(COMMANDS);
  for (const name of names) {
    const command = await COMMANDS[name]?.(program);
    if (command !== undefined) program.addCommand(command, { hidden: name === COMPLETE });
  }
  addExamples(program, KUBECTL_EXAMPLES);
  return program;
}
