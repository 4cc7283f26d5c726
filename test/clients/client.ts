import type { Output } from './machine.js';
import type { Workshop } from './workshop.js';

/** One program of a client, which runs alone and in a slice. */
export interface Program {
  /** What the program shows, in a few words; unique within its client. */
  readonly name: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Folders behind the driver's folder in LD_LIBRARY_PATH: those of NVRTC, for example. */
  readonly libraries?: readonly string[];
  /** Copies of the program that run at once; each of several copies holds its memory until all copies have theirs. */
  readonly processes?: number;
  /** GPUs of the machine, and of the slice, each with the same limits; 1 by default. */
  readonly gpus?: 1 | 2;
  /** Of each GPU of the machine; absent: that of the simulated driver's default. */
  readonly computeCapability?: string;
  readonly timeoutMs?: number;
  /** A test suite of another project: a test that fails alone may fail in a slice, any other test must pass. */
  readonly mayFail?: boolean;
  /**
   * The report of a program that prints none itself: the lines that `readReport` accepts. Without it, the program's own
   * output is read.
   */
  readonly describe?: (output: Output) => string;
}

/** A program or library of another project that uses a GPU. */
export interface Client {
  /** The client's name in the table. */
  readonly title: string;
  readonly version: string;
  /** The interface by which the client reaches the driver. */
  readonly way: string;
  /** The client is part of `--quick`: it is installed and run in well under a minute. */
  readonly quick?: boolean;
  /** What of the client cannot be shown on the simulated driver, and why; for the table. */
  readonly limits?: string;
  /** Installs the client unless it is installed, and returns its programs. Throws `NotInstallable` if that fails. */
  readonly programs: (workshop: Workshop) => readonly Program[];
}
