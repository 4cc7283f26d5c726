/** The used part of elfy 1.0.0; the package ships no types. */
declare module 'elfy' {
  export interface Section {
    /** Name of the type, or its number if elfy has no name for it. */
    type: string | number;
    off: number;
    size: number;
    /** Index of the related section: for `dynamic` its string table. */
    link: number;
    /** A view of the parsed buffer, shorter than `size` if the file ends first. */
    data: Buffer;
  }
  export interface Elf {
    class: '32' | '64';
    endian: 'lsb' | 'msb';
    type: string | undefined;
    machine: string | undefined;
    body: { sections: Section[] };
  }
  /** Throws various errors for content that it does not understand. */
  export function parse(bytes: Buffer): Elf;
}
