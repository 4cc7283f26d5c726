import { print, printItem, type Output } from '../output.js';
import { printable, table } from '../terminal-text.js';
import { watch } from '../watch.js';

/** One line of a listing. */
export interface ListingRow {
  readonly cells: readonly string[];
  /** Cells of the further columns of `-o wide`. */
  readonly wide: readonly string[];
  /** Names the object; with `--watch`, the row is printed again when it changes. */
  readonly document: unknown;
}

export interface Listing {
  readonly headings: readonly string[];
  readonly wideHeadings: readonly string[];
  readonly rows: readonly ListingRow[];
  /** The line on standard error if there are no rows. */
  readonly none: string;
  /** Reasons for missing figures, by the name of the node that lacks them, or of what could not be read. */
  readonly problems: ReadonlyMap<string, string>;
  /** Number of nodes whose agents were asked, where agents alone know what the rows show; absent elsewhere. */
  readonly asked?: number;
}

export interface ListingOptions {
  readonly output: Output;
  readonly watch?: true;
}

/** Problems that are printed one by one. */
const MAX_PROBLEMS = 3;

/**
 * Prints a listing; with `--watch`, also every row that changes, until a signal arrives. If no agent that was asked
 * answered, the exit code is 1: nothing is known then. Rejects if the first read fails.
 */
export async function printListing(options: ListingOptions, read: () => Promise<Listing>): Promise<void> {
  const { output } = options;
  const first = await read();
  const { asked = 0 } = first;
  const silent = asked === 0 ? 0 : first.problems.size;
  const isBlind = silent > 0 && silent === asked;
  if (first.rows.length === 0 && !isBlind) process.stderr.write(`${first.none}\n`);
  if (silent > 0) process.stderr.write(`${silent} of ${asked} agents did not answer\n`);
  if (isBlind) process.exitCode = 1;
  if (options.watch === true) {
    const changes = new ListingChanges(output);
    await watch(first, read, (listing) => changes.print(listing));
    return;
  }
  printProblems(first.problems);
  if (first.rows.length > 0 || output === 'json' || output === 'yaml')
    await print(output, {
      document: () => first.rows.map(({ document }) => document),
      table: () => asTable(first, false),
      wide: () => asTable(first, true),
    });
}

/** Prints what differs from the listing before. */
class ListingChanges {
  readonly #output: Output;
  #documents: ReadonlySet<string> = new Set();
  #problems: ReadonlyMap<string, string> = new Map();
  #widths: readonly number[] = [];

  constructor(output: Output) {
    this.#output = output;
  }

  async print(listing: Listing): Promise<void> {
    printProblems(new Map([...listing.problems].filter(([node, problem]) => this.#problems.get(node) !== problem)));
    this.#problems = listing.problems;
    const changed = listing.rows.filter(({ document }) => !this.#documents.has(JSON.stringify(document)));
    this.#documents = new Set(listing.rows.map(({ document }) => JSON.stringify(document)));
    if (this.#output !== 'json' && this.#output !== 'yaml') this.#printLines(listing, changed);
    else
      for (const { document } of changed) await printItem(this.#output, { document: () => document, table: () => '' });
  }

  /** The columns keep the widths of the first lines. */
  #printLines(listing: Listing, changed: readonly ListingRow[]): void {
    if (changed.length === 0) return;
    const isWide = this.#output === 'wide';
    const lines = changed.map((row) => cellsOf(row, isWide).map(printable));
    const heading = this.#widths.length === 0 ? [headingsOf(listing, isWide)] : [];
    if (this.#widths.length === 0) this.#widths = widthsOf([...heading, ...lines]);
    for (const cells of [...heading, ...lines]) {
      const padded = cells.map((cell, at) => cell.padEnd(this.#widths[at] ?? 0));
      process.stdout.write(`${padded.join('  ').trimEnd()}\n`);
    }
  }
}

function printProblems(problems: ReadonlyMap<string, string>): void {
  const all = [...problems];
  for (const [what, problem] of all.slice(0, MAX_PROBLEMS))
    process.stderr.write(`kubectl gpu: ${printable(what)}: ${printable(problem)}\n`);
  if (all.length > MAX_PROBLEMS)
    process.stderr.write(`kubectl gpu: and ${all.length - MAX_PROBLEMS} more whose figures are missing\n`);
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
