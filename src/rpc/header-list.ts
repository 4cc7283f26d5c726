import hpack, { type HeaderField } from 'hpack.js';

/** Default size of a peer's dynamic table (RFC 9113 section 6.5.2). */
const TABLE_BYTES = 4_096;
/** Overhead of each field (RFC 9113 section 6.5.2). */
const FIELD_BYTES = 32;

export type HeaderListField = Pick<HeaderField, 'name' | 'value'>;

/**
 * Decodes the header blocks of one connection (HPACK, RFC 7541). A block of a few bytes can repeat the same long field
 * of the table many times, so the decoded size is checked field by field, and decoding ends at the limit.
 */
export class HeaderListDecoder {
  readonly #decompressor = hpack.decompressor.create({ table: { maxSize: TABLE_BYTES } });
  readonly #limitBytes: number;
  #fields: HeaderListField[] = [];
  #bytes = 0;
  #error: Error | null = null;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
    this.#decompressor.on('error', (error) => (this.#error = error));
    // Fields are read one by one: the decompressor's own queue would hold the whole block first.
    this.#decompressor.push = (field) => this.#take(field);
  }

  /**
   * The fields of a whole block. Throws if it is malformed or exceeds the limit; the connection cannot be decoded
   * afterwards. Of some malformed blocks hpack.js reads values that are undefined: its exceptions are refusals too.
   */
  decode(block: Buffer): HeaderListField[] {
    this.#fields = [];
    this.#bytes = 0;
    try {
      this.#decompressor.write(block);
      this.#decompressor.execute();
      if (this.#error !== null) throw this.#error;
    } catch (error) {
      this.#error = error as Error;
      throw new Error(`HTTP/2 header block refused: ${this.#error.message}`, { cause: error });
    }
    return this.#fields;
  }

  #take({ name, value }: HeaderField): void {
    this.#bytes += name.length + value.length + FIELD_BYTES;
    if (this.#bytes > this.#limitBytes) throw new Error(`its fields exceed ${this.#limitBytes} bytes`);
    this.#fields.push({ name, value });
  }
}
