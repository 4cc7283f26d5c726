import type { Command } from 'commander';
import { StartupError } from '../host/startup-error.js';

/**
 * Refuses words after a command whose default subcommand takes none: they are a misspelt subcommand. The default
 * subcommand calls this in its action and needs `allowExcessArguments()`.
 */
export function refuseWords(subcommand: Command): void {
  const [word] = subcommand.args;
  if (word === undefined) return;
  const { parent } = subcommand;
  const known = (parent?.commands ?? []).map((command) => command.name());
  throw new StartupError(`${parent?.name() ?? ''}: unknown command "${word}"; expected ${known.join(', ')}`);
}
