import type { Command } from 'commander';
import { StartupError } from '../host/startup-error.js';

/**
 * Refuses words after a command whose default subcommand takes none: they are a misspelt subcommand. For the action of
 * that subcommand, made with `allowExcessArguments()`.
 */
export function refuseWords(subcommand: Command): void {
  const [word] = subcommand.args;
  if (word === undefined) return;
  const { parent } = subcommand;
  const known = (parent?.commands ?? []).map((command) => command.name());
  throw new StartupError(`${parent?.name() ?? ''}: unknown command "${word}"; expected ${known.join(', ')}`);
}
