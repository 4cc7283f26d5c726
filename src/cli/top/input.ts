/** Keys with a meaning of their own. */
export type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page-up'
  | 'page-down'
  | 'home'
  | 'end'
  | 'enter'
  | 'escape'
  | 'backspace'
  | 'clear'
  | 'interrupt'
  | 'suspend'
  | 'redraw';

/** An event of a terminal. Positions start at 0. */
export type InputEvent =
  | { readonly kind: 'key'; readonly name: KeyName }
  /** One character. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'press'; readonly row: number; readonly column: number }
  | { readonly kind: 'wheel'; readonly lines: 1 | -1 };

const CONTROL_KEYS: Readonly<Record<string, KeyName>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0001': 'home',
  '\u0005': 'end',
  '\u0002': 'page-up',
  '\u0006': 'page-down',
  '\u0003': 'interrupt',
  '\u000c': 'redraw',
  '\u0015': 'clear',
  '\u001a': 'suspend',
};

/** Final characters of a control sequence, as of xterm. */
const LETTER_KEYS: Readonly<Record<string, KeyName>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
};

/** Numbers before a final tilde, as of VT220 and its successors. */
const NUMBER_KEYS: Readonly<Record<string, KeyName>> = {
  1: 'home',
  7: 'home',
  4: 'end',
  8: 'end',
  5: 'page-up',
  6: 'page-down',
};

const ESCAPE = '\u001b';
/* eslint-disable no-control-regex -- They are what is read here. */
const MOUSE = /^\u001b\[<(\d{1,4});(\d{1,5});(\d{1,5})([Mm])/u;
const SEQUENCE = /^\u001b\[([0-?]*)[ -/]*([@-~])/u;
const SINGLE_SHIFT = /^\u001bO([ -~])/u;
const UNFINISHED = /^\u001b(?:\[[0-?]*[ -/]*|O)?$/u;
/* eslint-enable no-control-regex */

/** No sequence that means anything is longer. */
const MAX_SEQUENCE = 32;

/** Buttons and modifiers of a mouse report. */
const MODIFIERS = 4 + 8 + 16;
const WHEEL_UP = 64;
const WHEEL_DOWN = 65;

/** Reads keys and the mouse (mode 1006) from the characters of a terminal, which may come in any pieces. */
export class InputReader {
  #rest = '';

  /**
   * True after the beginning of a sequence. It may also be the Escape key: call `flush` if nothing follows for a
   * moment.
   */
  get unfinished(): boolean {
    return this.#rest !== '';
  }

  read(text: string): InputEvent[] {
    const events: InputEvent[] = [];
    this.#rest += text;
    while (this.#rest !== '') {
      const length = this.#first(events);
      if (length === 0) break;
      this.#rest = this.#rest.slice(length);
    }
    return events;
  }

  /** Reads the remaining characters as single keys. */
  flush(): InputEvent[] {
    const rest = this.#rest;
    this.#rest = '';
    return rest.startsWith(ESCAPE) ? [{ kind: 'key', name: 'escape' }, ...this.read(rest.slice(1))] : this.read(rest);
  }

  /** Adds the first event of what is left, and returns how many characters it takes; 0 if it is unfinished. */
  #first(events: InputEvent[]): number {
    const rest = this.#rest;
    if (!rest.startsWith(ESCAPE)) return character(rest, events);
    const mouse = MOUSE.exec(rest);
    if (mouse !== null) {
      const [all, button = '', column = '', row = '', end = ''] = mouse;
      events.push(...mouseEvent(Number(button), Number(row) - 1, Number(column) - 1, end === 'M'));
      return all.length;
    }
    const sequence = SEQUENCE.exec(rest);
    if (sequence !== null) {
      const [all, numbers = '', end = ''] = sequence;
      const name = end === '~' ? NUMBER_KEYS[numbers.split(';')[0] ?? ''] : LETTER_KEYS[end];
      if (name !== undefined && /^[\d;]*$/u.test(numbers)) events.push({ kind: 'key', name });
      return all.length;
    }
    const shifted = SINGLE_SHIFT.exec(rest);
    if (shifted !== null) {
      const [all, letter = ''] = shifted;
      const name = letter === 'M' ? 'enter' : LETTER_KEYS[letter];
      if (name !== undefined) events.push({ kind: 'key', name });
      return all.length;
    }
    if (UNFINISHED.test(rest) && rest.length <= MAX_SEQUENCE) return 0;
    events.push({ kind: 'key', name: 'escape' });
    return 1;
  }
}

function character(rest: string, events: InputEvent[]): number {
  const text = String.fromCodePoint(rest.codePointAt(0) ?? 0);
  const name = CONTROL_KEYS[text];
  if (name !== undefined) events.push({ kind: 'key', name });
  else if (!/\p{Cc}/u.test(text)) events.push({ kind: 'text', text });
  return text.length;
}

function mouseEvent(button: number, row: number, column: number, pressed: boolean): InputEvent[] {
  const which = button & ~MODIFIERS;
  if (!pressed || row < 0 || column < 0) return [];
  if (which === WHEEL_UP || which === WHEEL_DOWN) return [{ kind: 'wheel', lines: which === WHEEL_UP ? -1 : 1 }];
  return which === 0 ? [{ kind: 'press', row, column }] : [];
}
