import { Command } from 'commander';
import { placesOf } from '../completion.js';
import { namedKind, objectNames } from './object-names.js';

/** Tells kubectl's completion to offer no file names. */
const NO_FILES = ':4';

/**
 * `kubectl gpu __complete WORDS...`: for the program `kubectl_complete-gpu`, which kubectl starts to complete the words
 * after `kubectl gpu`. Prints one candidate a line, then kubectl's directive.
 */
export function completeCommand(program: () => Command): Command {
  return new Command('__complete')
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: readonly string[]) => {
      const { path, offered } = candidates(program(), words);
      const kind = namedKind(path, words);
      const names = kind === null ? [] : await objectNames(kind, words);
      const current = words.at(-1) ?? '';
      const all = [...names.filter((name) => name.startsWith(current)), ...offered];
      process.stdout.write([...all, NO_FILES, ''].join('\n'));
    });
}

/** The command that the words name, and those of its words that may stand in place of the last one. */
function candidates(
  program: Command,
  words: readonly string[],
): { readonly path: string; readonly offered: readonly string[] } {
  const places = placesOf(program).filter(({ path }) => path !== '__complete');
  const current = words.at(-1) ?? '';
  let path = '';
  for (const word of words.slice(0, -1)) {
    const next = path === '' ? word : `${path} ${word}`;
    if (places.some((place) => place.path === next)) path = next;
  }
  const place = places.find((each) => each.path === path);
  const offered = place?.values.get(words.at(-2) ?? '') ?? place?.words ?? [];
  return { path, offered: offered.filter((word) => word.startsWith(current) && word !== '__complete') };
}
