import * as z from 'zod';
import { fileReason } from '../../host/file-reason.js';
import { packageFile } from '../../host/package-files.js';
import { StartupError } from '../../host/startup-error.js';
import { integer, parseDocument, text } from './document.js';
import { XID_CLASSES, type HealthPolicy, type KnownXid } from './health-policy.js';
import { readStateFile } from '../../host/state-file.js';

export type HealthPolicyResult =
  { readonly ok: true; readonly policy: HealthPolicy } | { readonly ok: false; readonly reason: string };

const SECOND_MS = 1000;
const DAY_SECONDS = 86_400;
const MAX_XID = 65_535;

const xidClass = z.enum(XID_CLASSES, XID_CLASSES.join(', '));
const period = integer(1, 7 * DAY_SECONDS);

const classes = z
  .record(z.string(), z.record(z.string(), text(), 'an object'), 'an object')
  .transform((members, context): ReadonlyMap<number, KnownXid> => {
    const xids = new Map<number, KnownXid>();
    const refuse = (path: string[], message: string, input: unknown): void =>
      context.addIssue({ code: 'custom', path, message, input });
    for (const [name, meanings] of Object.entries(members)) {
      const known = XID_CLASSES.find((each) => each === name);
      if (known === undefined) {
        refuse([name], `no such class; they are ${XID_CLASSES.join(', ')}`, meanings);
        continue;
      }
      for (const [number, meaning] of Object.entries(meanings)) {
        const xid = Number(number);
        const other = xids.get(xid);
        if (!/^\d+$/u.test(number) || xid > MAX_XID)
          refuse([name, number], 'the number of an XID as its name', meaning);
        else if (other !== undefined)
          refuse([name, number], `each XID once, and ${xid} is ${other.class} too`, meaning);
        else xids.set(xid, { class: known, meaning });
      }
    }
    return xids;
  });

/** etc/xid-classes.json describes the format. */
const schema = z
  .object(
    {
      classes: classes.default(new Map()),
      otherwise: xidClass.default('transient'),
      uncorrectedEcc: xidClass.default('reset'),
      probationSeconds: integer(1, DAY_SECONDS).default(60),
      longestProbationSeconds: period.default(3600),
      strikes: integer(1, 1000).default(3),
      strikeWindowSeconds: period.default(3600),
    },
    'an object',
  )
  .transform((read, context): HealthPolicy => {
    const { probationSeconds, longestProbationSeconds, strikeWindowSeconds } = read;
    if (longestProbationSeconds < probationSeconds)
      context.addIssue({
        code: 'custom',
        path: ['longestProbationSeconds'],
        message: `no less than probationSeconds, ${probationSeconds}`,
        input: longestProbationSeconds,
      });
    return {
      xids: read.classes,
      otherwise: read.otherwise,
      uncorrectedEcc: read.uncorrectedEcc,
      probationMs: probationSeconds * SECOND_MS,
      longestProbationMs: longestProbationSeconds * SECOND_MS,
      strikes: read.strikes,
      strikeWindowMs: strikeWindowSeconds * SECOND_MS,
    };
  });

/**
 * Reads a table of error classes (JSON, format in etc/xid-classes.json). A refusal is one line that names the place.
 */
export function parseHealthPolicy(document: string): HealthPolicyResult {
  const parsed = parseDocument(document, schema);
  return parsed.ok ? { ok: true, policy: parsed.value } : parsed;
}

const SHIPPED_POLICY = packageFile('etc/xid-classes.json');

/** Reads the classes of GPU errors and their consequences; the shipped file unless another is named. */
export async function readHealthPolicy(path: string | null): Promise<HealthPolicy> {
  const file = path ?? SHIPPED_POLICY;
  let text: string;
  try {
    text = await readStateFile(file);
  } catch (error) {
    throw new StartupError(`--health-config: ${file}: ${fileReason(error)}`);
  }
  const parsed = parseHealthPolicy(text);
  if (!parsed.ok) throw new StartupError(`--health-config: ${file}: ${parsed.reason}`);
  return parsed.policy;
}
