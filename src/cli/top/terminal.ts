import { StringDecoder } from 'node:string_decoder';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Size } from './frame.js';
import { InputReader, type InputEvent } from './input.js';

/** How long after its first byte a sequence may be complete; else it was the Escape key. */
const ESCAPE_MS = 50;

/**
 * Private modes of xterm that nearly every terminal knows: alternate screen, cursor, line wrap, mouse with SGR reports.
 */
const ALTERNATE_SCREEN = '?1049';
const CURSOR = '?25';
const WRAP = '?7';
const MOUSE = '?1000;1006';

const on = (mode: string): string => `\u001b[${mode}h`;
const off = (mode: string): string => `\u001b[${mode}l`;

export interface TerminalListener {
  readonly input: (event: InputEvent) => void;
  readonly resize: () => void;
  /** The terminal is gone. */
  readonly closed: () => void;
}

/** The terminal in full-screen mode. Its earlier state is restored however the process ends, except by SIGKILL. */
export class Terminal {
  readonly #stdin: ReadStream;
  readonly #stdout: WriteStream;
  readonly #mouse: boolean;
  readonly #reader = new InputReader();
  #listener: TerminalListener | null = null;
  #decoder = new StringDecoder('utf8');
  #escape: NodeJS.Timeout | undefined;
  #shown: readonly string[] = [];

  constructor(stdin: ReadStream, stdout: WriteStream, mouse: boolean) {
    this.#stdin = stdin;
    this.#stdout = stdout;
    this.#mouse = mouse;
  }

  get size(): Size {
    // Some terminals, such as those of serial lines, do not know their size and say 0.
    return { columns: this.#stdout.columns || 80, rows: this.#stdout.rows || 24 };
  }

  /** Switches to the full screen, and starts to read keys. */
  open(listener: TerminalListener): void {
    this.#listener = listener;
    process.on('exit', this.#leave);
    process.on('uncaughtExceptionMonitor', this.#leave);
    process.on('SIGCONT', this.#resume);
    this.#stdout.on('resize', listener.resize);
    // Without keys, a signal ends the program.
    if (this.#stdin.isTTY) {
      this.#stdin.on('data', this.#hear);
      this.#stdin.on('end', listener.closed);
      this.#stdin.on('error', listener.closed);
    }
    this.#enter();
  }

  /** Restores the screen, and stops reading keys. */
  close(): void {
    this.#leave();
    clearTimeout(this.#escape);
    process.off('exit', this.#leave);
    process.off('uncaughtExceptionMonitor', this.#leave);
    process.off('SIGCONT', this.#resume);
    if (this.#listener !== null) {
      this.#stdout.off('resize', this.#listener.resize);
      this.#stdin.off('end', this.#listener.closed);
      this.#stdin.off('error', this.#listener.closed);
    }
    this.#stdin.off('data', this.#hear);
    this.#stdin.pause();
    this.#listener = null;
  }

  /** Writes the lines that changed since the last time. */
  draw(lines: readonly string[]): void {
    const changes = lines.flatMap((line, at) =>
      line === this.#shown[at] ? [] : [`\u001b[${at + 1};1H${line}\u001b[K`],
    );
    if (lines.length < this.#shown.length) changes.push(`\u001b[${lines.length + 1};1H\u001b[J`);
    if (changes.length > 0) this.#stdout.write(changes.join(''));
    this.#shown = lines;
  }

  /** Makes the next drawing write all lines, because another program may have written to the terminal. */
  clear(): void {
    this.#stdout.write('\u001b[2J');
    this.#shown = [];
  }

  /** Stops the process, as Ctrl-Z does, until the shell continues it. */
  suspend(): void {
    this.#leave();
    process.kill(process.pid, 'SIGTSTP');
  }

  readonly #resume = (): void => {
    this.#enter();
    this.#listener?.resize();
  };

  #enter(): void {
    if (this.#stdin.isTTY) this.#stdin.setRawMode(true);
    const mouse = this.#mouse ? on(MOUSE) : '';
    this.#stdout.write(`${on(ALTERNATE_SCREEN)}${off(CURSOR)}${off(WRAP)}${mouse}`);
    this.clear();
  }

  readonly #leave = (): void => {
    const mouse = this.#mouse ? off(MOUSE) : '';
    this.#stdout.write(`${mouse}${on(WRAP)}${on(CURSOR)}${off(ALTERNATE_SCREEN)}`);
    if (this.#stdin.isTTY) this.#stdin.setRawMode(false);
  };

  readonly #hear = (bytes: Buffer): void => {
    clearTimeout(this.#escape);
    this.#tell(this.#reader.read(this.#decoder.write(bytes)));
    if (this.#reader.unfinished) this.#escape = setTimeout(() => this.#tell(this.#reader.flush()), ESCAPE_MS).unref();
  };

  #tell(events: readonly InputEvent[]): void {
    for (const event of events) this.#listener?.input(event);
  }
}
