import { Option, type Command } from 'commander';
import { StartupError } from '../host/startup-error.js';

/** Options of kubectl that users expect everywhere. */
const EXPECTED = {
  watch: '-w, --watch',
  selector: '-l, --selector <labels>',
  allNamespaces: '-A, --all-namespaces',
} as const;

/** Refuses options of kubectl that a command does not have, each with a sentence that says what to do instead. */
export function refuseOptions<C extends Command>(
  command: C,
  sentences: Readonly<Partial<Record<keyof typeof EXPECTED, string>>>,
): C {
  for (const name of Object.keys(sentences) as (keyof typeof EXPECTED)[]) {
    const option = new Option(EXPECTED[name]).hideHelp();
    command.addOption(option).on(`option:${option.name()}`, () => {
      throw new StartupError(`${command.name()}: ${option.short} does not apply: ${sentences[name]}`);
    });
  }
  return command;
}

/** Takes options about namespaces that change nothing, because the objects have no namespace; kubectl does the same. */
export function ignoreNamespaces<C extends Command>(command: C): C {
  return command
    .addOption(new Option(EXPECTED.allNamespaces).hideHelp())
    .addOption(new Option('-n, --namespace <name>').hideHelp());
}
