import type { Output } from './machine.js';
import type { Workshop } from './workshop.js';

/** One program of a client, as it is run alone and in a slice. */
export interface Program {
  /** What it shows, in a few words; unique within its client. */
  readonly name: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Folders that stand behind the driver's in LD_LIBRARY_PATH: those of NVRTC, for example. */
  readonly libraries?: readonly string[];
  /** Copies of it that run at once; with more than one, each holds its memory until all have theirs. */
  readonly processes?: number;
  readonly timeoutMs?: number;
  /** Somebody's test suite: what fails alone may fail in a slice, and nothing else. */
  readonly mayFail?: boolean;
  /**
   * The report of a program that does not print one itself: the lines that `readReport` takes. Without it, what the
   * program prints is read.
   */
  readonly describe?: (output: Output) => string;
}

/** A program or library that somebody else made and that uses a GPU. */
export interface Client {
  /** As the table calls it. */
  readonly title: string;
  readonly version: string;
  /** How it comes to the driver. */
  readonly way: string;
  /** It is part of `--quick`: installed and run in well under a minute. */
  readonly quick?: boolean;
  /** What of it cannot be shown on the simulated driver, and why; for the table. */
  readonly limits?: string;
  /** Installs it, where that is not done yet, and answers its programs. Throws `NotInstallable` where it cannot. */
  readonly programs: (workshop: Workshop) => readonly Program[];
}
