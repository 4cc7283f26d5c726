import { Option, type Command } from 'commander';
import { environmentName, RUN_FLAGS } from './run-flags.js';

/** Gives a command the flags of the agent. */
export function addRunFlags(command: Command): void {
  for (const flag of RUN_FLAGS) {
    const dashes = flag.name.length === 1 ? `-${flag.name}, --${flag.name}` : `--${flag.name}`;
    const usage = flag.value === null ? `${dashes} [true|false]` : `${dashes} <${flag.value}>`;
    const option = new Option(
      usage,
      `${flag.help} (default: ${JSON.stringify(flag.default)}, env: ${environmentName(flag.name)})`,
    );
    if (flag.value === null) option.preset('true');
    command.addOption(option);
  }
}

/** The flags that were given, by flag name. commander's attribute names differ: --share-mode is shareMode. */
export function givenRunFlags(options: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const given: Record<string, string> = {};
  for (const flag of RUN_FLAGS) {
    const value = options[flag.name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    if (value !== undefined) given[flag.name] = value;
  }
  return given;
}
