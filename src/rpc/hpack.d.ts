/** The part of hpack.js (RFC 7541) that is used here; the package ships no types. */
declare module 'hpack.js' {
  export interface HeaderField {
    name: string;
    value: string;
  }
  export interface Decompressor {
    write(block: Buffer): void;
    /** Decodes what was written; emits 'error' on a malformed block. */
    execute(): void;
    read(): HeaderField | null;
    on(event: 'error', listener: (error: Error) => void): void;
  }
  export const decompressor: { create(options: { table: { maxSize: number } }): Decompressor };
}
