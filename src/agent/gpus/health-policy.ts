import { DecodeError, reader, type Reader } from './json-reader.js';

/**
 * What an error says of the GPU: `ignored` nothing (the application's own, or a mere remark); `transient` that it
 * should rest and may come back; `reset` that it is of no use until it was reset; `fatal` that it is broken or gone.
 */
export type XidClass = 'ignored' | 'transient' | 'reset' | 'fatal';

export const XID_CLASSES: readonly XidClass[] = ['ignored', 'transient', 'reset', 'fatal'];

/** One line of the table. */
export interface KnownXid {
  readonly class: XidClass;
  /** In words, for the reason that operators read. */
  readonly meaning: string;
}

/** How errors of GPUs are taken; see etc/xid-classes.json. */
export interface HealthPolicy {
  readonly xids: ReadonlyMap<number, KnownXid>;
  /** Class of an XID that the table does not know. */
  readonly otherwise: XidClass;
  /** Class of memory errors that ECC could not correct. */
  readonly uncorrectedEcc: XidClass;
  /** A GPU rests this long after a transient error, twice as long after the second, and so on. */
  readonly probationMs: number;
  readonly longestProbationMs: number;
  /** So many transient errors within the window count as one that needs a reset. */
  readonly strikes: number;
  readonly strikeWindowMs: number;
}

export type HealthPolicyResult =
  { readonly ok: true; readonly policy: HealthPolicy } | { readonly ok: false; readonly reason: string };

const SECOND_MS = 1000;
const DAY_SECONDS = 86_400;
const MAX_XID = 65_535;

/** Reads a table of classes (JSON, format in etc/xid-classes.json). A refusal is one line that names the place. */
export function parseHealthPolicy(text: string): HealthPolicyResult {
  try {
    return { ok: true, policy: read(reader(JSON.parse(text) as unknown, '')) };
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, reason: error.message };
    if (error instanceof SyntaxError)
      return { ok: false, reason: `not JSON: ${error.message.replaceAll(/\s+/gu, ' ')}` };
    throw error;
  }
}

function read(root: Reader): HealthPolicy {
  const probationMs = root.field('probationSeconds').integer(60, 1, DAY_SECONDS) * SECOND_MS;
  const longest = root.field('longestProbationSeconds');
  const longestProbationMs = longest.integer(3600, 1, 7 * DAY_SECONDS) * SECOND_MS;
  if (longestProbationMs < probationMs)
    throw longest.wrong(`no less than probationSeconds, ${probationMs / SECOND_MS}`);
  return {
    xids: readClasses(root.field('classes')),
    otherwise: readClass(root.field('otherwise'), 'transient'),
    uncorrectedEcc: readClass(root.field('uncorrectedEcc'), 'reset'),
    probationMs,
    longestProbationMs,
    strikes: root.field('strikes').integer(3, 1, 1000),
    strikeWindowMs: root.field('strikeWindowSeconds').integer(3600, 1, 7 * DAY_SECONDS) * SECOND_MS,
  };
}

function readClasses(classes: Reader): ReadonlyMap<number, KnownXid> {
  const xids = new Map<number, KnownXid>();
  for (const [name, members] of classes.entries()) {
    const found = XID_CLASSES.find((known) => known === name);
    if (found === undefined) throw members.wrong(`no such class; they are ${XID_CLASSES.join(', ')}`);
    for (const [number, meaning] of members.entries()) {
      const xid = Number(number);
      if (!/^\d+$/u.test(number) || xid > MAX_XID) throw meaning.wrong('the number of an XID as its name');
      const other = xids.get(xid);
      if (other !== undefined) throw meaning.wrong(`each XID once, and ${xid} is ${other.class} too`);
      xids.set(xid, { class: found, meaning: meaning.text('') });
    }
  }
  return xids;
}

function readClass(value: Reader, otherwise: XidClass): XidClass {
  const name = value.text(otherwise);
  const found = XID_CLASSES.find((known) => known === name);
  if (found === undefined) throw value.wrong(XID_CLASSES.join(', '));
  return found;
}
