import * as z from 'zod';
import { afterEvent, afterTime, freshHealth, type GpuHealth } from './health.js';
import type { HealthPolicy } from './health-policy.js';

/**
 * Values that identify one uptime of a GPU, which ends when the GPU is reset, its driver is loaded again, or the
 * machine boots. Null: unknown.
 */
export interface GpuLife {
  readonly bootId: string | null;
  readonly driverVersion: string | null;
  /** Energy used in this uptime, in millijoules: it only grows. */
  readonly energyMillijoules: number | null;
}

/** One change of a GPU's health, for operators. */
export interface HealthChange {
  readonly atMs: number;
  readonly status: GpuHealth['status'];
  readonly reason: string | null;
}

/** The stored record of one GPU. */
export interface HealthRecord {
  readonly uuid: string;
  readonly health: GpuHealth;
  readonly life: GpuLife;
  /** The latest changes, oldest first. */
  readonly changes: readonly HealthChange[];
}

/** Number of changes that are kept for each GPU. */
const MAX_CHANGES = 32;

const VERSION = 1;
const status = z.enum(['healthy', 'probation', 'reset', 'failed', 'lost']);
const file = z.object({
  version: z.literal(VERSION),
  gpus: z.array(
    z.object({
      uuid: z.string(),
      health: z.object({
        status,
        reason: z.string().nullable(),
        sinceMs: z.number(),
        untilMs: z.number().nullable(),
        strikesMs: z.array(z.number()),
      }),
      life: z.object({
        bootId: z.string().nullable(),
        driverVersion: z.string().nullable(),
        energyMillijoules: z.number().nullable(),
      }),
      changes: z.array(z.object({ atMs: z.number(), status, reason: z.string().nullable() })),
    }),
  ),
});

export type DecodedHistory =
  { readonly ok: true; readonly records: readonly HealthRecord[] } | { readonly ok: false; readonly reason: string };

export function encodeHistory(records: readonly HealthRecord[]): string {
  return `${JSON.stringify({ version: VERSION, gpus: records })}\n`;
}

/** Reads a stored history; never throws. */
export function decodeHistory(text: string): DecodedHistory {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message}` };
  }
  const read = file.safeParse(document);
  if (read.success) return { ok: true, records: read.data.gpus };
  const [issue] = read.error.issues;
  return { ok: false, reason: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'malformed'}` };
}

/** The record with one more change. */
export function withChange(record: HealthRecord, health: GpuHealth, life: GpuLife, nowMs: number): HealthRecord {
  const change = { atMs: nowMs, status: health.status, reason: health.reason };
  return { ...record, health, life, changes: [...record.changes, change].slice(-MAX_CHANGES) };
}

/** A record of a GPU without history. */
export function freshRecord(uuid: string, life: GpuLife, nowMs: number): HealthRecord {
  return { uuid, health: freshHealth(nowMs), life, changes: [] };
}

/**
 * The health of a GPU that an earlier run of the agent stored and that answers now. Its errors stay, with their age,
 * unless the GPU was reset or restarted since; a probation that has expired ends.
 */
export function restoredHealth(record: HealthRecord, life: GpuLife, nowMs: number, policy: HealthPolicy): GpuHealth {
  const known = notInFuture(record.health, nowMs);
  const reason = newLife(record.life, life);
  if (reason !== null) return afterTime(afterEvent(known, { kind: 'restarted', reason }, nowMs, policy), nowMs);
  return afterTime(afterEvent(known, { kind: 'found' }, nowMs, policy), nowMs);
}

/** Why `now` is another uptime than `before`; null if it is the same, as far as known. */
export function newLife(before: GpuLife, now: GpuLife): string | null {
  if (before.bootId !== null && now.bootId !== null && before.bootId !== now.bootId) return 'the machine was booted';
  if (before.driverVersion !== null && now.driverVersion !== null && before.driverVersion !== now.driverVersion)
    return `the driver was changed to ${now.driverVersion}`;
  if (
    before.energyMillijoules !== null &&
    now.energyMillijoules !== null &&
    now.energyMillijoules < before.energyMillijoules
  )
    return 'the GPU was reset';
  return null;
}

/** A clock that was set back must not lengthen a probation. */
function notInFuture(health: GpuHealth, nowMs: number): GpuHealth {
  const ahead = health.sinceMs - nowMs;
  if (ahead <= 0) return health;
  return {
    ...health,
    sinceMs: nowMs,
    untilMs: health.untilMs === null ? null : health.untilMs - ahead,
    strikesMs: health.strikesMs.map((at) => Math.min(at, nowMs)),
  };
}
