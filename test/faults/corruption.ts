import { readFile, rm, writeFile } from 'node:fs/promises';

/** Damage that a file may suffer. */
export const CORRUPTIONS = [
  'missing',
  'empty',
  'truncated',
  'bit flipped',
  'garbage',
  'of a newer version',
  'of another program',
] as const;

export type Corruption = (typeof CORRUPTIONS)[number];

/** Damages the file. An absent file stays absent. */
export async function corrupt(path: string, corruption: Corruption, random: () => number): Promise<void> {
  const content = await readFile(path).catch(() => null);
  if (content === null) return;
  switch (corruption) {
    case 'missing':
      return rm(path);
    case 'empty':
      return writeFile(path, '');
    case 'truncated':
      return writeFile(path, content.subarray(0, Math.floor(random() * content.length)));
    case 'bit flipped': {
      const at = Math.floor(random() * content.length);
      content[at] = (content[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      return writeFile(path, content);
    }
    case 'garbage':
      return writeFile(path, Buffer.from(Array.from({ length: 300 }, () => Math.floor(random() * 256))));
    case 'of a newer version':
      return writeFile(path, content.toString().replace('"version":1', '"version":99'));
    case 'of another program':
      return writeFile(path, '{"PodDevices":[{"uid":7}]}');
  }
}
