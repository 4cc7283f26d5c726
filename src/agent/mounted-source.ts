import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT, VERSIONS } from './libraries/mirror.js';

/**
 * Whether a runtime that was told to mount `meant` shows that as `mounted`: it follows links first, and the link of a
 * library mirror led to an earlier version when the container was made.
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
    // A version that is gone cannot be looked into; its name is ours.
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
