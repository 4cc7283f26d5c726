import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT, VERSIONS } from './mirror.js';

/**
 * Whether the runtime may show a mount of `meant` as `mounted`: it resolves links first, and the link of a library
 * mirror may have led to an earlier version when the container was created.
 */
export function isSameSource(meant: string, mounted: string): boolean {
  return meant === mounted || resolved(meant) === mounted || isEarlierVersion(meant, mounted);
}

function isEarlierVersion(meant: string, mounted: string): boolean {
  const at = `${meant}/`.indexOf(`/${CURRENT}/`);
  if (at < 0) return false;
  const mirror = meant.slice(0, at);
  const below = meant.slice(at + 1 + CURRENT.length);
  for (const root of new Set([mirror, resolved(mirror)])) {
    const versions = `${root}/${VERSIONS}/`;
    const version = mounted.startsWith(versions) ? mounted.slice(versions.length).split('/')[0] : undefined;
    if (version === undefined || version === '') continue;
    const path = join(versions, version, below);
    // A version that was removed cannot be resolved; its name identifies it.
    if (path === mounted || resolved(path) === mounted) return true;
  }
  return false;
}

function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
