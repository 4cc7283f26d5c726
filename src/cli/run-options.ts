import { Option, type Command } from 'commander';
import { environmentName, RUN_FLAG_GROUPS, RUN_FLAGS } from './run-flags.js';

/** Gives a command the flags of the agent, under their headings. */
export function addRunFlags(command: Command): void {
  for (const { title, flags } of RUN_FLAG_GROUPS) {
    for (const flag of flags) {
      const dashes = flag.name.length === 1 ? `-${flag.name}, --${flag.name}` : `--${flag.name}`;
      const usage = flag.value === null ? `${dashes} [true|false]` : `${dashes} <${flag.value}>`;
      const option = new Option(
        usage,
        `${flag.help} (default: ${JSON.stringify(flag.default)}, env: ${environmentName(flag.name)})`,
      ).helpGroup(`${title}:`);
      if (flag.value === null) option.preset('true');
      command.addOption(option);
    }
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
