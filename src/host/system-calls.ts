import koffi from 'koffi';
import { CallListLibrary, type Call, type CallList } from './call-list.js';

/** A call of a function of the C library that returns an int, or a count of bytes that fits into one. */
export interface SystemCall {
  readonly name: string;
  readonly args: Call['args'];
}

interface Calls {
  readonly library: CallListLibrary;
  readonly libc: ReturnType<typeof koffi.load>;
  /** By name. */
  readonly addresses: Map<string, bigint>;
}

/** Null if lists of calls are not possible. */
let opened: Calls | null | undefined;

function open(): Calls | null {
  const library = CallListLibrary.open();
  if (library === null) return null;
  try {
    return { library, libc: koffi.load('libc.so.6'), addresses: new Map() };
  } catch {
    return null;
  }
}

function addressOf({ libc, addresses }: Calls, name: string): bigint {
  const known = addresses.get(name) ?? koffi.address(libc.symbol(name));
  addresses.set(name, known);
  return known;
}

/**
 * A list of system calls that never wait, to be made over and over with one step out of JavaScript; null if this is not
 * possible here.
 */
export function systemCallList(calls: readonly SystemCall[]): CallList | null {
  opened ??= open();
  if (opened === null) return null;
  const known = opened;
  try {
    return known.library.list(calls.map(({ name, args }) => ({ address: addressOf(known, name), args })));
  } catch {
    return null;
  }
}
