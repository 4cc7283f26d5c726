import { fileURLToPath } from 'node:url';

/** The folder of package.json, with `etc`, `native` and `dist`; the bundle has the same layout. */
const ROOT = new URL('../../../', import.meta.url);

/** The absolute path of a file or folder that this package ships, for example `etc/xid-classes.json`. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(path, ROOT));
}
