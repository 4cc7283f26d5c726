import { createHash } from 'node:crypto';
import type { Types } from '../../quota/internal.js';

/**
 * Bytes of the hash that stands for the uid of an object. A pod that no charge covers is taken for one that was covered
 * if the hashes are equal: beside 10,000 covered objects with a probability of 4e-11.
 */
const HASH_BYTES = 6;

/** Objects that the charges of a group cover, all charged with the same types. */
export interface CoveredObjects {
  readonly types: Types;
  /** By `hashOf`. */
  readonly hashes: readonly number[];
}

/** The number that stands for the uid of an object. */
export function hashOf(uid: string): number {
  return createHash('sha1').update(uid).digest().readUIntBE(0, HASH_BYTES);
}

/** The text of covered objects; equal ones have equal texts. */
export function coverText(covered: Iterable<CoveredObjects>): string {
  const written = [...covered].map(({ types, hashes }): readonly [Types, string] => {
    const bytes = Buffer.alloc(hashes.length * HASH_BYTES);
    const sorted = [...hashes].sort((a, b) => a - b);
    for (const [index, hash] of sorted.entries()) bytes.writeUIntBE(hash, index * HASH_BYTES, HASH_BYTES);
    return [types, bytes.toString('base64')];
  });
  return JSON.stringify(written.sort(([a], [b]) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)));
}

/** Reads such a text. Throws on a text that no service can have written. */
export function readCover(text: string): readonly CoveredObjects[] {
  return (JSON.parse(text) as readonly (readonly [Types, string])[]).map(([types, base64]) => {
    const bytes = Buffer.from(base64, 'base64');
    const count = Math.floor(bytes.length / HASH_BYTES);
    return { types, hashes: Array.from({ length: count }, (_, at) => bytes.readUIntBE(at * HASH_BYTES, HASH_BYTES)) };
  });
}
