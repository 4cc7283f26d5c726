import { VCUDA_BLOCK_BYTES, VCUDA_CORES_PER_GPU } from './gpu-resources.js';
import { wholeQuantity } from './quantity.js';

/** The part of an annotation's value for a container; undefined if it names only other containers. */
export function valueFor(text: string, container: string): string | undefined {
  if (!text.includes('=')) return text;
  const entries = text.split(',').map((entry) => entry.trim());
  const names = entries.map((entry) => entry.slice(0, Math.max(0, entry.indexOf('='))));
  // If an entry has no name, or a name occurs twice, the whole list is invalid.
  if (names.includes('') || new Set(names).size < names.length) return text;
  const at = names.indexOf(container);
  return at < 0 ? undefined : entries[at]?.slice(container.length + 1);
}

/**
 * Bytes from a whole number of blocks ("16") or a quantity with a unit ("4GiB", "4Gi", "1500M"); null for an invalid
 * or empty text.
 */
export function parseMemory(text: string): number | null {
  if (/^\d{1,9}$/.test(text)) return Number(text) > 0 ? Number(text) * VCUDA_BLOCK_BYTES : null;
  const bytes = wholeQuantity(text.replace(/iB$/u, 'i'));
  return bytes !== null && bytes > 0 ? bytes : null;
}

/** 1 to 100; null for anything else. */
export function parseCores(text: string): number | null {
  const value = parseAnyCores(text);
  return value !== null && Number(text) <= VCUDA_CORES_PER_GPU ? value : null;
}

/** As the original does: more than a whole GPU means a whole GPU. */
export function parseAnyCores(text: string): number | null {
  return /^\d{1,9}$/.test(text) && Number(text) > 0 ? Math.min(VCUDA_CORES_PER_GPU, Number(text)) : null;
}
