import { createHash } from 'node:crypto';
import type { QuotaEvent } from '../core/event.js';

/** Where a chain of audit lines ends: what the next line is tied to. */
export interface ChainEnd {
  /** Number of the last line, 0 before the first. */
  readonly sequence: number;
  /** Its digest, hexadecimal. */
  readonly digest: string;
}

/** The end of a chain without lines. */
export const CHAIN_START: ChainEnd = { sequence: 0, digest: '0'.repeat(64) };

/** Why lines are no chain, and where. */
export interface BrokenChain {
  readonly ok: false;
  readonly line: number;
  readonly reason: string;
}

export type VerifiedChain = { readonly ok: true; readonly end: ChainEnd } | BrokenChain;

/**
 * Ties events together: each line holds the digest of the one before it, so that none can be changed, taken out or put
 * in without all that follow being made anew. What is cut off at the end shows only to who knows the last digest.
 */
export class AuditChain {
  #end: ChainEnd;

  /** Goes on behind `end`. */
  constructor(end: ChainEnd = CHAIN_START) {
    this.#end = end;
  }

  get end(): ChainEnd {
    return this.#end;
  }

  /** The next line, without line end. */
  append(event: QuotaEvent): string {
    const sequence = this.#end.sequence + 1;
    const body = bodyOf(sequence, this.#end.digest, JSON.stringify(plainEvent(event)));
    const digest = digestOf(body);
    this.#end = { sequence, digest };
    return `${body.slice(0, -1)},"digest":"${digest}"}`;
  }
}

/**
 * Checks lines of an audit file, in their order. `head`, the digest that the last line has to have, shows what was cut
 * off.
 */
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
      reason: `the last digest is ${end.digest}, not ${head}: lines are missing at the end, or others were added`,
    };
  return { ok: true, end };
}

/** Whether a line means to be one of a chain: other programs write to the same log. */
export function isAuditLine(line: string): boolean {
  return line.startsWith('{"sequence":');
}

function verifyLine(line: string, end: ChainEnd): ChainEnd | string {
  const [, body, digest = ''] = /^(\{.*),"digest":"([0-9a-f]{64})"\}$/.exec(line) ?? [];
  if (body === undefined) return 'no line of an audit file';
  const [, sequence, previous, event] =
    /^\{"sequence":(\d+),"previous":"([0-9a-f]{64})","event":(\{.*\})$/.exec(body) ?? [];
  if (event === undefined) return 'no line of an audit file';
  if (digestOf(bodyOf(Number(sequence), previous ?? '', event)) !== digest)
    return 'it was changed: its digest is another one';
  if (previous !== end.digest) return `it does not follow the line before: lines were taken out, put in or moved`;
  if (Number(sequence) !== end.sequence + 1) return `it is number ${sequence} behind number ${end.sequence}`;
  return { sequence: Number(sequence), digest };
}

function bodyOf(sequence: number, previous: string, event: string): string {
  return `{"sequence":${sequence},"previous":"${previous}","event":${event}}`;
}

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

/** An event as JSON can hold it: amounts are digits in base units. */
export function plainEvent(event: QuotaEvent): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]: [string, unknown]) => [
      name,
      value instanceof Map
        ? Object.fromEntries([...(value as ReadonlyMap<string, bigint>)].map(([key, amount]) => [key, `${amount}`]))
        : value,
    ]),
  );
}
