import { extraFlags } from './extra-flags.js';

/** The command if none is named, as in the original; at a terminal, the help is printed instead. */
export const DEFAULT_COMMAND = 'run';

const HELP = new Set(['-h', '--help']);

/** The command that a command line names; null if the help of all commands is asked for. */
export function namedCommand([first]: readonly string[]): string | null {
  if (first === undefined) return process.stdin.isTTY && process.stdout.isTTY ? null : DEFAULT_COMMAND;
  if (HELP.has(first)) return null;
  return first.startsWith('-') ? DEFAULT_COMMAND : first;
}

/** The arguments with flags as they are declared. EXTRA_FLAGS applies only to the agent, and takes precedence. */
export function declaredArguments(argv: readonly string[]): readonly string[] {
  const isAgent =
    namedCommand(argv) === DEFAULT_COMMAND && !argv.some((argument) => HELP.has(argument) || argument === '--version');
  return [...argv, ...(isAgent ? extraFlags(process.env) : [])].map(normalise);
}

/** The original accepts underscores instead of dashes in flag names. */
function normalise(argument: string): string {
  const [name, ...value] = argument.split('=');
  if (name?.startsWith('--') !== true) return argument;
  if (argument === '--version=true' || argument === '--version=raw') return '--version';
  return [name.replaceAll('_', '-'), ...value].join('=');
}
