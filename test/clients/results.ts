import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** The results of one program alone and in a slice. */
export interface ProgramResult {
  readonly name: string;
  /** The number of values compared between the two. */
  readonly facts: number;
  /** Of a test suite: the tests that pass alone. */
  readonly passes: number;
  readonly alone: readonly string[];
  readonly inSlice: readonly string[];
  /** What the program could not try, and why. */
  readonly skipped: Readonly<Record<string, string>>;
}

export interface ClientResult {
  readonly title: string;
  readonly version: string;
  readonly way: string;
  readonly limits: string;
  readonly programs: readonly ProgramResult[];
}

/** The latest result of every client, kept between runs, for the table of docs/reference/compatibility.md. */
export class ResultsFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(): Readonly<Record<string, ClientResult>> {
    if (!existsSync(this.#path)) return {};
    const all = JSON.parse(readFileSync(this.#path, 'utf8')) as Record<string, Partial<ClientResult>>;
    // Results of an older version of this program have fewer fields.
    return Object.fromEntries(
      Object.entries(all).filter((entry): entry is [string, ClientResult] => entry[1].way !== undefined),
    );
  }

  write(client: string, result: ClientResult): void {
    writeFileSync(this.#path, JSON.stringify({ ...this.read(), [client]: result }, null, 2));
  }
}
