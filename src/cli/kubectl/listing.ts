import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import { print, printItem, type Output } from '../output.js';
import { stopSignal } from '../stop-signal.js';
import { printable, table } from '../terminal-text.js';

/** One line of a listing. */
export interface ListingRow {
  /** Identifies the object over time. */
  readonly key: string;
  readonly cells: readonly string[];
  /** Cells of the further columns of `-o wide`. */
  readonly wide: readonly string[];
  readonly document: unknown;
}

export interface Listing {
  readonly headings: readonly string[];
  readonly wideHeadings: readonly string[];
  readonly rows: readonly ListingRow[];
  /** What is printed on standard error if there are no rows. */
  readonly none: string;
  /** Why figures are missing, by what lacks them. */
  readonly problems: ReadonlyMap<string, string>;
}

export interface ListingOptions {
  readonly output: Output;
  readonly watch?: true;
}

/** Interval of `--watch`. */
const LOOK_MS = 2_000;
/** Problems that are printed one by one. */
const MAX_PROBLEMS = 3;

export function watchOption(): Option {
  return new Option('-w, --watch', 'then print rows again as they change');
}

/** Prints a listing; with `--watch`, also every row that changes, until a signal arrives. */
export async function printListing(options: ListingOptions, read: () => Promise<Listing>): Promise<void> {
  const { output } = options;
  const first = await read();
  printProblems(first.problems);
  if (first.rows.length === 0) process.stderr.write(`${first.none}\n`);
  if (options.watch !== true) {
    if (first.rows.length > 0 || output === 'json' || output === 'yaml')
      await print(output, {
        document: () => first.rows.map(({ document }) => document),
        table: () => asTable(first, false),
        wide: () => asTable(first, true),
      });
    return;
  }
  const end = new AbortController();
  void stopSignal().then(() => end.abort());
  const shown = new Map<string, string>();
  const isWide = output === 'wide';
  let widths: readonly number[] = [];
  for (let listing = first; ; listing = await read()) {
    const changed = listing.rows.filter(({ key, document }) => {
      const text = JSON.stringify(document);
      const isNew = shown.get(key) !== text;
      shown.set(key, text);
      return isNew;
    });
    if (output === 'json' || output === 'yaml')
      for (const { document } of changed) await printItem(output, { document: () => document, table: () => '' });
    else if (changed.length > 0) {
      const lines = changed.map((row) => cellsOf(row, isWide).map(printable));
      const heading = widths.length === 0 ? [headingsOf(listing, isWide)] : [];
      if (widths.length === 0) widths = widthsOf([...heading, ...lines]);
      process.stdout.write(
        [...heading, ...lines]
          .map(
            (cells) =>
              `${cells
                .map((cell, at) => cell.padEnd(widths[at] ?? 0))
                .join('  ')
                .trimEnd()}\n`,
          )
          .join(''),
      );
    }
    await delay(LOOK_MS, undefined, { signal: end.signal }).catch(() => undefined);
    if (end.signal.aborted) return;
  }
}

export function printProblems(problems: ReadonlyMap<string, string>): void {
  const all = [...problems];
  for (const [what, problem] of all.slice(0, MAX_PROBLEMS))
    process.stderr.write(`kubectl gpu: ${printable(what)}: ${printable(problem)}\n`);
  if (all.length > MAX_PROBLEMS)
    process.stderr.write(`kubectl gpu: and ${all.length - MAX_PROBLEMS} more nodes whose figures are missing\n`);
}

function asTable(listing: Listing, isWide: boolean): string {
  return table(
    headingsOf(listing, isWide),
    listing.rows.map((row) => cellsOf(row, isWide)),
  );
}

function headingsOf({ headings, wideHeadings }: Listing, isWide: boolean): readonly string[] {
  return isWide ? [...headings, ...wideHeadings] : headings;
}

function cellsOf({ cells, wide }: ListingRow, isWide: boolean): readonly string[] {
  return isWide ? [...cells, ...wide] : cells;
}

function widthsOf(rows: readonly (readonly string[])[]): readonly number[] {
  return (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
}
