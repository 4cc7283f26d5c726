import { createHash } from 'node:crypto';
import type { QuotaEvent } from '../core/state/event.js';

/** End of an audit chain, to which the next line is linked. */
export interface ChainEnd {
  /** Number of the last line; 0 before the first. */
  readonly sequence: number;
  /** Digest of the last line, hexadecimal. */
  readonly digest: string;
}

/** The end of an empty chain. */
export const CHAIN_START: ChainEnd = { sequence: 0, digest: '0'.repeat(64) };

/** The first broken line of a chain, and why. */
export interface BrokenChain {
  readonly ok: false;
  readonly line: number;
  readonly reason: string;
}

export type VerifiedChain = { readonly ok: true; readonly end: ChainEnd } | BrokenChain;

/**
 * A hash chain of events: each line holds the digest of the line before, so that changing, removing or inserting a line
 * invalidates all later lines. A truncated end shows only in comparison with a known last digest.
 */
export class AuditChain {
  #end: ChainEnd;

  /** Continues the chain after `end`. */
  constructor(end: ChainEnd = CHAIN_START) {
    this.#end = end;
  }

  get end(): ChainEnd {
    return this.#end;
  }

  /** The next line, without line feed. */
  append(event: QuotaEvent): string {
    const sequence = this.#end.sequence + 1;
    const body = bodyOf(sequence, this.#end.digest, JSON.stringify(plainEvent(event)));
    const digest = digestOf(body);
    this.#end = { sequence, digest };
    return `${body.slice(0, -1)},"digest":"${digest}"}`;
  }
}

/** Verifies the lines of an audit file. `head` is the expected digest of the last line, which shows a truncated end. */
export async function verifyChain(
  lines: AsyncIterable<string> | Iterable<string>,
  head?: string,
): Promise<VerifiedChain> {
  let end = CHAIN_START;
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line === '') continue;
    const next = verifyLine(line, end);
    if (typeof next === 'string') return { ok: false, line: number, reason: next };
    end = next;
  }
  if (head !== undefined && head !== end.digest)
    return {
      ok: false,
      line: number,
      reason: `the last digest is ${end.digest}, expected ${head}: lines at the end were removed or added`,
    };
  return { ok: true, end };
}

/** Whether a line looks like an audit line; a log may contain lines of other programs. */
export function isAuditLine(line: string): boolean {
  return line.startsWith('{"sequence":');
}

function verifyLine(line: string, end: ChainEnd): ChainEnd | string {
  const [, body, digest = ''] = /^(\{.*),"digest":"([0-9a-f]{64})"\}$/.exec(line) ?? [];
  if (body === undefined) return 'not a line of an audit file';
  const [, sequence, previous, event] =
    /^\{"sequence":(\d+),"previous":"([0-9a-f]{64})","event":(\{.*\})$/.exec(body) ?? [];
  if (event === undefined) return 'not a line of an audit file';
  if (digestOf(bodyOf(Number(sequence), previous ?? '', event)) !== digest)
    return 'the line was changed: its digest does not match its content';
  if (previous !== end.digest)
    return `the line does not continue the line before: lines were removed, inserted or moved`;
  if (Number(sequence) !== end.sequence + 1) return `the line has number ${sequence}, expected ${end.sequence + 1}`;
  return { sequence: Number(sequence), digest };
}

function bodyOf(sequence: number, previous: string, event: string): string {
  return `{"sequence":${sequence},"previous":"${previous}","event":${event}}`;
}

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

/** An event as a JSON value: amounts are decimal texts in base units. */
function plainEvent(event: QuotaEvent): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]: [string, unknown]) => [
      name,
      value instanceof Map
        ? Object.fromEntries([...(value as ReadonlyMap<string, bigint>)].map(([key, amount]) => [key, `${amount}`]))
        : value,
    ]),
  );
}
