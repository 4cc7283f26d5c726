import { Option, type Command } from 'commander';
import { StartupError } from '../../host/startup-error.js';
import { record, text } from '../../kube/json.js';
import { table as aligned } from '../../quota-command/table.js';
import { isDocument, outputOption, print, printItem, type Output } from '../output.js';
import { printable } from '../terminal-text.js';
import { watch, watchOption } from '../watch.js';

/** One line of a listing. */
export interface ListingRow {
  readonly cells: readonly string[];
  /** Cells of the further columns of `-o wide`. */
  readonly wide: readonly string[];
  /** Names the object; with `--watch`, the row is printed again when it changes. */
  readonly document: object;
}

export interface Listing {
  readonly headings: readonly string[];
  readonly wideHeadings: readonly string[];
  readonly rows: readonly ListingRow[];
  /** The line on standard error if there are no rows. */
  readonly none: string;
  /** Kind of the objects in the answer of `-o name`; absent if that format does not exist. */
  readonly kind?: string;
  /** Reasons for missing figures, by the name of the node that lacks them, or of what could not be read. */
  readonly problems: ReadonlyMap<string, string>;
  /** Number of nodes whose agents were asked, where agents alone know what the rows show; absent elsewhere. */
  readonly asked?: number;
}

export interface ListingOptions {
  readonly output: Output | 'name';
  readonly watch?: true;
  readonly headers: boolean;
  readonly sortBy?: string;
}

/** Adds the options of every listing; with `hasNames`, also the format `-o name`. */
export function addListingOptions(command: Command, hasNames = false): Command {
  return command
    .addOption(watchOption())
    .addOption(new Option('--no-headers', 'no line with the titles of the columns'))
    .addOption(
      new Option('--sort-by <field>', 'sort by a field of -o json, such as usedCores; objects without it last'),
    )
    .addOption(outputOption(hasNames ? { format: 'name', meaning: 'kind/name only' } : undefined));
}

/** Problems that are printed one by one. */
const MAX_PROBLEMS = 3;

/**
 * Prints a listing; with `--watch`, also every row that changes, until a signal arrives. If no agent that was asked
 * answered, the exit code is 1: nothing is known then. Rejects if the first read fails.
 */
export async function printListing(options: ListingOptions, read: () => Promise<Listing>): Promise<void> {
  const { output, headers, sortBy } = options;
  const sorted = async (): Promise<Listing> => sortListing(await read(), sortBy);
  const first = await sorted();
  const { asked = 0 } = first;
  const silent = asked === 0 ? 0 : first.problems.size;
  const isBlind = silent > 0 && silent === asked;
  if (first.rows.length === 0 && !isBlind) process.stderr.write(`${first.none}\n`);
  if (silent > 0) process.stderr.write(`${silent} of ${asked} agents did not answer\n`);
  if (isBlind) process.exitCode = 1;
  if (options.watch === true) {
    const changes = new ListingChanges(output, headers);
    await watch(first, sorted, (listing) => changes.print(listing));
    return;
  }
  printProblems(first.problems);
  if (output === 'name') printNames(first, first.rows);
  else if (first.rows.length > 0 || isDocument(output))
    await print(output, {
      document: () => first.rows.map(({ document }) => document),
      table: () => asTable(first, headers, false),
      wide: () => asTable(first, headers, true),
    });
}

/** As kubectl prints names: without their namespaces. */
function printNames({ kind }: Listing, rows: readonly ListingRow[]): void {
  for (const { document } of rows)
    process.stdout.write(`${printable(`${kind ?? ''}/${text(record(document)['name'])}`)}\n`);
}

/** The rows in ascending order of a field, which may be written as in kubectl: `name`, `.name` or `{.name}`. */
function sortListing(listing: Listing, sortBy: string | undefined): Listing {
  if (sortBy === undefined || listing.rows.length === 0) return listing;
  const field = sortBy.replace(/^\{(.*)\}$/u, '$1').replace(/^\./u, '');
  const valueOf = ({ document }: ListingRow): unknown => record(document)[field] ?? null;
  const fields = Object.keys(listing.rows[0]?.document ?? {});
  if (!fields.includes(field))
    throw new StartupError(`--sort-by: no field ${JSON.stringify(field)}; there are ${fields.join(', ')}`);
  return { ...listing, rows: [...listing.rows].sort((a, b) => compareValues(valueOf(a), valueOf(b))) };
}

/** Numbers by size, other values by their JSON; null last. */
function compareValues(a: unknown, b: unknown): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return JSON.stringify(a).localeCompare(JSON.stringify(b), 'en', { numeric: true });
}

/** Prints what differs from the listing before. */
class ListingChanges {
  readonly #output: ListingOptions['output'];
  readonly #headers: boolean;
  #documents: ReadonlySet<string> = new Set();
  #problems: ReadonlyMap<string, string> = new Map();
  #widths: readonly number[] = [];

  constructor(output: ListingOptions['output'], headers: boolean) {
    this.#output = output;
    this.#headers = headers;
  }

  async print(listing: Listing): Promise<void> {
    printProblems(new Map([...listing.problems].filter(([node, problem]) => this.#problems.get(node) !== problem)));
    this.#problems = listing.problems;
    const changed = listing.rows.filter(({ document }) => !this.#documents.has(JSON.stringify(document)));
    this.#documents = new Set(listing.rows.map(({ document }) => JSON.stringify(document)));
    if (this.#output === 'name') printNames(listing, changed);
    else if (!isDocument(this.#output)) this.#printLines(listing, changed);
    else
      for (const { document } of changed) await printItem(this.#output, { document: () => document, table: () => '' });
  }

  /** The columns keep the widths of the first lines. */
  #printLines(listing: Listing, changed: readonly ListingRow[]): void {
    if (changed.length === 0) return;
    const isWide = this.#output === 'wide';
    const lines = changed.map((row) => cellsOf(row, isWide).map(printable));
    const isFirst = this.#widths.length === 0;
    const titles = [headingsOf(listing, isWide)];
    if (isFirst) this.#widths = widthsOf([...titles, ...lines]);
    for (const cells of [...(isFirst && this.#headers ? titles : []), ...lines]) {
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

function asTable(listing: Listing, hasHeaders: boolean, isWide: boolean): string {
  const lines = listing.rows.map((row) => cellsOf(row, isWide).map(printable));
  return aligned(hasHeaders ? [headingsOf(listing, isWide), ...lines] : lines);
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
