import { readFile } from 'node:fs/promises';

/** The host's users if this process sees the host's processes, or else those of its own container. */
const PASSWD_FILES = ['/proc/1/root/etc/passwd', '/etc/passwd'];

/** Names of the users of this machine, by number, from the first file that can be read. */
export async function userNames(files: readonly string[] = PASSWD_FILES): Promise<ReadonlyMap<number, string>> {
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => null);
    if (text !== null) return parsePasswd(text);
  }
  return new Map();
}

/** Parses passwd(5); of several names for one number the first counts. */
export function parsePasswd(text: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const line of text.split('\n')) {
    const [name = '', , uid = ''] = line.split(':');
    if (name !== '' && /^\d+$/u.test(uid) && !names.has(Number(uid))) names.set(Number(uid), name);
  }
  return names;
}
