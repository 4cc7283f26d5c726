#!/usr/bin/env node
import type { Command } from 'commander';
import { endAtClosedPipe, newProgram, runProgram } from './program.js';

/** Loaders of the commands, in the order of the help; only the requested command is loaded. */
const COMMANDS: Readonly<Record<string, (program: Command) => Promise<Command>>> = {
  top: async () => (await import('./kubectl/top.js')).topCommand(),
  nodes: async () => (await import('./kubectl/nodes.js')).nodesCommand(),
  pods: async () => (await import('./kubectl/pods.js')).podsCommand(),
  describe: async () => (await import('./kubectl/describe.js')).describeCommand(),
  limits: async () => (await import('./kubectl/limits.js')).limitsCommand(),
  events: async () => (await import('./kubectl/events.js')).eventsCommand(),
  quota: async () => (await import('./kubectl/quota.js')).quotaCommand(),
  doctor: async () => (await import('./kubectl/doctor.js')).doctorCommand(),
  __complete: async (program) => (await import('./kubectl/complete.js')).completeCommand(() => program),
};

/** kubectl looks for a plugin under this name. */
const program = newProgram('kubectl gpu', 'See and share the GPUs of a cluster, through its API server');
const [first = ''] = process.argv.slice(2);
const COMPLETE = '__complete';
const names = first in COMMANDS && first !== COMPLETE ? [first] : Object.keys(COMMANDS);
for (const name of names) {
  const command = await COMMANDS[name]?.(program);
  if (command !== undefined) program.addCommand(command, { hidden: name === COMPLETE });
}
endAtClosedPipe();
process.exitCode = await runProgram(program, process.argv.slice(2));
