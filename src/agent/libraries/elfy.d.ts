/** The part of elfy 1.0.0 that is used here; the package ships no types. */
declare module 'elfy' {
  export interface Section {
    /** Name of the type, or its number where elfy knows none. */
    type: string | number;
    off: number;
    size: number;
    /** Index of the section that this one refers to: for `dynamic` its string table. */
    link: number;
    /** A view of the parsed buffer, shorter than `size` where the file ends first. */
    data: Buffer;
  }
  export interface Elf {
    class: '32' | '64';
    endian: 'lsb' | 'msb';
    type: string | undefined;
    machine: string | undefined;
    body: { sections: Section[] };
  }
  /** Throws on anything that it does not understand, with whatever error comes up. */
  export function parse(bytes: Buffer): Elf;
}
