// Prints the notes of a release from the changelog:
//
//     node scripts/release-notes.mjs VERSION [CHANGELOG]
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const [version, path = fileURLToPath(new URL('../CHANGELOG.md', import.meta.url))] = process.argv.slice(2);
if (version === undefined || !/^\d+\.\d+\.\d+(-[\w.]+)?$/u.test(version)) {
  console.error(`release-notes: expected a version such as 1.2.3, found ${version ?? 'nothing'}`);
  process.exit(2);
}
const sections = (await readFile(path, 'utf8')).split(/^(?=## )/mu).slice(1);
const heading = /^## (\S+)(?: - \d{4}-\d{2}-\d{2})?\n/u;
const notes = sections
  .find((section) => heading.exec(section)?.[1] === version)
  ?.replace(heading, '')
  .trim();
if (!notes) {
  const known = sections.map((section) => heading.exec(section)?.[1]).join(', ');
  console.error(
    `release-notes: ${path} has no entries for ${version}, but for ${known}: rename "Unreleased" before you tag`,
  );
  process.exit(1);
}
console.log(notes);
