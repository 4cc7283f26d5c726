import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import headless from '@xterm/headless';
import { eventually } from './eventually.js';

const BRIDGE = fileURLToPath(new URL('../../../test/harness/pty_bridge.py', import.meta.url));

/** The reason why no pseudo-terminal can be made; false where one can. */
export const noPseudoTerminal =
  spawnSync('python3', ['-c', 'import pty, fcntl, termios']).status === 0 ? false : 'python3 is not installed';

const CURSOR_MODE = 25;
/** The first eight colours of a terminal, and their bright ones. */
const ANSI_COLORS = [
  ...['#5c6370', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d6d8de'],
  ...['#8b8f99', '#ff7b86', '#b5e08f', '#f7d794', '#83c5ff', '#dd9bf0', '#7fd6e0', '#ffffff'],
];

/** How a program ended, and what it left of its terminal. */
export interface Ended {
  /** Negative: the signal. */
  readonly code: number;
  readonly echo: boolean;
  readonly canonical: boolean;
}

/** A program on a real pseudo-terminal, and the terminal emulator xterm.js that shows it. */
export class PseudoTerminal {
  readonly ended: Promise<Ended>;
  readonly #bridge: ChildProcess;
  readonly #screen: InstanceType<typeof headless.Terminal>;
  #showsCursor = true;
  #stops = 0;
  #isOver = false;

  constructor(
    command: readonly string[],
    options: {
      readonly rows: number;
      readonly columns: number;
      readonly environment?: Readonly<Record<string, string | undefined>>;
    },
  ) {
    const { rows, columns, environment = {} } = options;
    this.#screen = new headless.Terminal({ rows, cols: columns, allowProposedApi: true });
    for (const final of ['h', 'l'])
      this.#screen.parser.registerCsiHandler({ prefix: '?', final }, (parameters) => {
        if (parameters.includes(CURSOR_MODE)) this.#showsCursor = final === 'h';
        return false;
      });
    this.#bridge = spawn('python3', [BRIDGE, String(rows), String(columns), ...command], {
      detached: true,
      env: { ...process.env, TERM: 'xterm-256color', ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { stdout, stderr } = this.#bridge;
    if (stdout === null || stderr === null) throw new Error('no pipes');
    stdout.on('data', (bytes: Buffer) => this.#screen.write(bytes));
    const drained = new Promise<void>((resolve) => stdout.on('end', () => this.#screen.write('', resolve)));
    this.ended = new Promise((resolve, reject) => {
      createInterface({ input: stderr }).on('line', (line) => {
        if (!line.startsWith('{')) return reject(new Error(line));
        const event = JSON.parse(line) as { readonly stopped?: boolean } & Ended;
        if (event.stopped === true) {
          this.#stops += 1;
          return;
        }
        void drained.then(() => {
          this.#isOver = true;
          resolve(event);
        });
      });
    });
  }

  /** The lines of the screen, without spaces at their ends. */
  get lines(): readonly string[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_, at) =>
      (active.getLine(active.baseY + at)?.translateToString(true) ?? '').trimEnd(),
    );
  }

  get text(): string {
    return this.lines.join('\n');
  }

  /** The lines that are drawn in reverse, without spaces at their ends. */
  get selected(): readonly string[] {
    const { active } = this.#screen.buffer;
    return this.lines.filter(
      (_, at) =>
        active
          .getLine(active.baseY + at)
          ?.getCell(0)
          ?.isInverse() !== 0,
    );
  }

  /** Whether some cell of the screen has a colour. */
  get hasColor(): boolean {
    const { active } = this.#screen.buffer;
    return this.lines.some((_, at) => {
      const line = active.getLine(active.baseY + at);
      return Array.from({ length: this.#screen.cols }, (__, column) => line?.getCell(column)).some(
        (cell) => cell !== undefined && !cell.isFgDefault(),
      );
    });
  }

  /** The lines as runs of equal style, with colours as CSS has them. */
  get styled(): readonly (readonly {
    readonly text: string;
    readonly color: string;
    readonly isBold: boolean;
    readonly isInverse: boolean;
  }[])[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_, at) => {
      const line = active.getLine(active.baseY + at);
      const runs: { text: string; color: string; isBold: boolean; isInverse: boolean }[] = [];
      for (let column = 0; column < this.#screen.cols; column++) {
        const cell = line?.getCell(column);
        if (cell === undefined || cell.getWidth() === 0) continue;
        const color = cell.isFgDefault() ? 'inherit' : (ANSI_COLORS[cell.getFgColor()] ?? 'inherit');
        const style = {
          color: cell.isDim() !== 0 ? '#8b8f99' : color,
          isBold: cell.isBold() !== 0,
          isInverse: cell.isInverse() !== 0,
        };
        const last = runs.at(-1);
        const text = cell.getChars() || ' ';
        if (last?.color === style.color && last.isBold === style.isBold && last.isInverse === style.isInverse)
          last.text += text;
        else runs.push({ text, ...style });
      }
      return runs;
    });
  }

  get modes() {
    const { mouseTrackingMode, wraparoundMode } = this.#screen.modes;
    return {
      alternate: this.#screen.buffer.active.type === 'alternate',
      cursor: this.#showsCursor,
      mouse: mouseTrackingMode,
      wrap: wraparoundMode,
    };
  }

  /** How often the program was suspended. */
  get stops(): number {
    return this.#stops;
  }

  press(keys: string): void {
    this.#ask({ keys });
  }

  resize(rows: number, columns: number): void {
    this.#screen.resize(columns, rows);
    this.#ask({ size: [rows, columns] });
  }

  signal(signal: number): void {
    this.#ask({ signal });
  }

  /** Continues the suspended program in the foreground. */
  resume(): void {
    this.#ask({ continue: true });
  }

  /** Waits until the screen is as `test` says; rejects with what it shows. */
  async until(what: string, test: () => boolean): Promise<void> {
    try {
      await eventually(() => test() || this.#isOver, what);
    } catch (error) {
      throw new Error(`${(error as Error).message}:\n${this.text}`, { cause: error });
    }
    if (!test()) throw new Error(`the program ended before ${what}:\n${this.text}`);
  }

  close(): void {
    this.#bridge.stdin?.end();
  }

  #ask(request: object): void {
    this.#bridge.stdin?.write(`${JSON.stringify(request)}\n`);
  }
}
