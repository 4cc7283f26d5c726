import { table as aligned } from '../quota-command/table.js';

/**
 * Text that is safe for a terminal: characters that could move the cursor or change the writing direction become
 * question marks. Tenants choose the names of pods.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '?');
}

/** A table with aligned columns, separated by two spaces. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return aligned([headings, ...rows.map((row) => row.map(printable))]);
}

const AGES: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** A duration in its largest whole unit: `3 h`. */
export function age(ms: number): string {
  const [unit, size] = AGES.find(([, each]) => ms >= each) ?? ['s', 1_000];
  return `${Math.floor(Math.max(0, ms) / size)} ${unit}`;
}

const MIB = 2 ** 20;

export function mib(bytes: number): string {
  return `${Math.floor(bytes / MIB)} MiB`;
}

const GIB = 2 ** 30;

/** Bytes in GiB with one decimal, without the unit. */
export function gib(bytes: number): string {
  return (bytes / GIB).toFixed(1);
}
