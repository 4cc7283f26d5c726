import hpack, { type HeaderField } from 'hpack.js';

/** Dynamic table of a peer that was told nothing else (RFC 9113 section 6.5.2). */
const TABLE_BYTES = 4_096;
/** What each field counts for beside its characters (RFC 9113 section 6.5.2). */
const FIELD_BYTES = 32;

export type HeaderListField = Pick<HeaderField, 'name' | 'value'>;

/**
 * Decodes the header blocks of one connection (HPACK, RFC 7541). A block of a few bytes can name the same long field of
 * the table again and again: the decoded list is measured field by field, and decoding ends where it exceeds the limit.
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
    // Fields are taken as they are decoded: the decompressor's own queue would hold all of a block first.
    this.#decompressor.push = (field) => this.#take(field);
  }

  /**
   * The fields of a whole block. Throws on one that is malformed or decodes to more than the limit; nothing can be
   * decoded after that.
   */
  decode(block: Buffer): HeaderListField[] {
    this.#fields = [];
    this.#bytes = 0;
    this.#decompressor.write(block);
    this.#decompressor.execute();
    if (this.#error !== null) throw new Error(`HTTP/2 header block refused: ${this.#error.message}`);
    return this.#fields;
  }

  #take({ name, value }: HeaderField): void {
    this.#bytes += name.length + value.length + FIELD_BYTES;
    if (this.#bytes > this.#limitBytes) throw new Error(`its fields exceed ${this.#limitBytes} bytes`);
    this.#fields.push({ name, value });
  }
}
