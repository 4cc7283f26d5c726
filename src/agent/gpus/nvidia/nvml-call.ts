import type { Argument, Parameter } from './library.js';
import { NVML } from './nvml-code.js';

/** A GPU or another object of the driver in NVML's own form; valid until `nvmlShutdown`. */
export type Handle = bigint;

/**
 * One NVML call: the function, its arguments, and how to read its result. Created for every call, because it owns its
 * buffers.
 */
export interface NvmlCall<T> {
  /**
   * The function that the agent lacks if the driver does not support the call, for operators; null if that is normal on
   * many GPUs.
   */
  readonly feature: string | null;
  /** The function's names, newest first. */
  readonly names: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly args: readonly Argument[];
  /** A buffer to which one of the arguments points: it exists as long as the call. */
  readonly pointee?: Buffer;
  /** Reads the result from the buffers among the arguments; `name` is the function that was called. */
  read(name: string): T;
  /** Maps a return code that is a result too; null for other codes. */
  instead?(code: number): T | null;
}

type Typed = readonly (readonly [Parameter, Argument])[];

/** Common fields of all calls. */
interface Form<T> {
  readonly feature: string | null;
  readonly names: readonly string[];
  instead?(code: number): T | null;
}

/** A call with `inputs` whose only result is its return code. */
export function command(names: readonly string[], inputs: Typed = []): NvmlCall<true> {
  return { feature: null, names, ...split(inputs), read: () => true };
}

/** A call that fills buffers of the given sizes, which are between `inputs` and `tail`. */
export function filling<T>(
  form: Form<T> & {
    readonly sizes: readonly number[];
    readonly inputs?: Typed;
    readonly tail?: Typed;
    read(name: string, ...out: Buffer[]): T;
  },
): NvmlCall<T> {
  const out = form.sizes.map(zeroed);
  const buffers: Typed = out.map((buffer) => ['memory', buffer] as const);
  const call = {
    feature: form.feature,
    names: form.names,
    ...split([...(form.inputs ?? []), ...buffers, ...(form.tail ?? [])]),
  };
  return { ...call, read: (name) => form.read(name, ...out), instead: (code) => form.instead?.(code) ?? null };
}

/** A call that fills one buffer with a text: optional GPU, buffer, size. */
export function text(feature: string, names: readonly string[], inputs: Typed = []): NvmlCall<string> {
  const size = 96;
  return filling({
    feature,
    names,
    inputs,
    sizes: [size],
    tail: [['uint', size]],
    read: (_name, out) => textAt(out, 0),
  });
}

/** A list, or the number of its entries if they did not fit. */
export type Listed<T> = { readonly entries: readonly T[] } | { readonly needed: number };

/** A call that fills a list of at most `room` entries and returns their number. */
export function listing<T>(
  form: Omit<Form<Listed<T>>, 'instead'> & {
    readonly inputs: Typed;
    readonly room: number;
    readonly tail?: Typed;
    /** Whether the entries come before their count. */
    readonly entriesFirst?: boolean;
    /** Bytes of an entry in the function of this name. */
    size(name: string): number;
    entry(out: Buffer, at: number): T;
  },
): NvmlCall<Listed<T>> {
  const count = zeroed(4);
  count.writeUInt32LE(form.room);
  const out = zeroed(form.room * Math.max(...form.names.map((name) => form.size(name))));
  const buffers: Typed = [
    ['memory', count],
    ['memory', out],
  ];
  return {
    feature: form.feature,
    names: form.names,
    ...split([
      ...form.inputs,
      ...(form.entriesFirst === true ? [...buffers].reverse() : buffers),
      ...(form.tail ?? []),
    ]),
    read: (name) => {
      const length = Math.min(form.room, count.readUInt32LE());
      return { entries: Array.from({ length }, (_, at) => form.entry(out, at * form.size(name))) };
    },
    instead: (code) => {
      if (code === NVML.INSUFFICIENT_SIZE) return { needed: count.readUInt32LE() };
      return code === NVML.NOT_FOUND || code === NVML.NO_DATA ? { entries: [] } : null;
    },
  };
}

/** A buffer from Node's pool: `Buffer.alloc` creates an ArrayBuffer for each, which costs more than most calls. */
function zeroed(size: number): Buffer {
  return Buffer.allocUnsafe(size).fill(0);
}

/** The text at an offset, up to its terminating zero. */
export function textAt(buffer: Buffer, at: number): string {
  const end = buffer.indexOf(0, at);
  return buffer.toString('utf8', at, end < 0 ? buffer.length : end);
}

/** A number of 32 bits at the start of a buffer. NVIDIA drivers run on little-endian machines only. */
export function uint(_name: string, out: Buffer | undefined): number {
  return (out as Buffer).readUInt32LE();
}

function split(typed: Typed): { parameters: readonly Parameter[]; args: readonly Argument[] } {
  return { parameters: typed.map(([type]) => type), args: typed.map(([, value]) => value) };
}
