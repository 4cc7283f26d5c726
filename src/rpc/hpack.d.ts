/** The used part of hpack.js (RFC 7541); the package ships no types. */
declare module 'hpack.js' {
  export interface HeaderField {
    name: string;
    value: string;
  }
  export interface Decompressor {
    write(block: Buffer): void;
    /**
     * Decodes the bytes and calls `push` for each field; emits `error` for a malformed block and for exceptions of
     * `push`.
     */
    execute(): void;
    push: (field: HeaderField) => void;
    on(event: 'error', listener: (error: Error) => void): void;
  }
  /** Tests encode with it. */
  export interface Compressor {
    write(fields: readonly (HeaderField & { readonly huffman?: boolean })[]): void;
    read(): Buffer | null;
  }
  export const compressor: { create(options: { table: { maxSize: number } }): Compressor };
  export const decompressor: { create(options: { table: { maxSize: number } }): Decompressor };
}
