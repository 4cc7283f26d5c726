import type { JournalFile, JournalFiles } from '../../../src/quota/store/journal/files.js';

type Operation =
  | { readonly what: 'create'; readonly name: string }
  | { readonly what: 'append'; readonly name: string; readonly bytes: Buffer }
  | { readonly what: 'sync'; readonly name: string }
  | { readonly what: 'rename'; readonly name: string; readonly to: string }
  | { readonly what: 'remove'; readonly name: string };

/** The content of a directory. */
export type Image = ReadonlyMap<string, Buffer>;

/** Files in memory that record all operations, so that a crash can be simulated after each of them. */
export class CrashFiles implements JournalFiles {
  readonly operations: Operation[] = [];
  readonly #files: Map<string, Buffer[]>;
  /** Open files by name; a renamed file stays open. */
  readonly #open = new Map<string, { name: string }>();

  constructor(image: Image = new Map()) {
    this.#files = new Map([...image].map(([name, bytes]) => [name, [bytes]]));
  }

  async list(): Promise<readonly string[]> {
    return [...this.#files.keys()];
  }

  async read(name: string): Promise<Buffer> {
    const parts = this.#files.get(name);
    if (parts === undefined) throw new Error(`no file ${name}`);
    return Buffer.concat(parts);
  }

  async create(name: string): Promise<JournalFile> {
    if (this.#files.has(name)) throw new Error(`there is a file ${name}`);
    this.#files.set(name, []);
    this.operations.push({ what: 'create', name });
    const file = { name };
    this.#open.set(name, file);
    return {
      append: async (given) => {
        const bytes = Buffer.from(given);
        this.#files.get(file.name)?.push(bytes);
        this.operations.push({ what: 'append', name: file.name, bytes });
      },
      sync: async () => {
        this.operations.push({ what: 'sync', name: file.name });
      },
      close: async () => undefined,
    };
  }

  async rename(name: string, to: string): Promise<void> {
    this.#files.set(to, this.#files.get(name) ?? []);
    this.#files.delete(name);
    const file = this.#open.get(name);
    if (file !== undefined) {
      file.name = to;
      this.#open.set(to, file);
    }
    this.operations.push({ what: 'rename', name, to });
  }

  async remove(name: string): Promise<void> {
    this.#files.delete(name);
    this.operations.push({ what: 'remove', name });
  }

  /**
   * The directory after a crash following `count` operations. Of appended bytes that were not synced, the fraction
   * `kept` remains in each file.
   */
  image(count: number, kept: number): Image {
    const files = new Map<string, { readonly durable: Buffer[]; readonly loose: Buffer[] }>();
    for (const operation of this.operations.slice(0, count)) {
      const file = files.get(operation.name);
      if (operation.what === 'create') files.set(operation.name, { durable: [], loose: [] });
      else if (operation.what === 'append') file?.loose.push(operation.bytes);
      else if (operation.what === 'sync') file?.durable.push(...file.loose.splice(0));
      else {
        files.delete(operation.name);
        if (operation.what === 'rename' && file !== undefined) files.set(operation.to, file);
      }
    }
    return new Map(
      [...files].map(([name, { durable, loose }]) => {
        const rest = Buffer.concat(loose);
        return [name, Buffer.concat([...durable, rest.subarray(0, Math.floor(rest.length * kept))])];
      }),
    );
  }
}
