import { DRIVER_TARGET, type CallGate } from './call-gate.js';
import type { FunctionCall, Library } from './library.js';
import { NVML, errorOf, isUnsupported, meaning } from './nvml-code.js';
import type { Question } from './question.js';

const NO_CODES: ReadonlyMap<string, number> = new Map();

type Questions<T extends readonly unknown[]> = { readonly [At in keyof T]: Question<T[At]> };
type Answers<T extends readonly unknown[]> = { readonly [At in keyof T]: Promise<T[At] | null> };

/** Calls for one GPU that are made together. */
interface Batch {
  readonly calls: FunctionCall[];
  /** In the order of `calls`; null if only single calls are possible. */
  readonly results: Promise<readonly number[] | null>;
}

/** Calls NVML through the gate. A call that this driver or GPU does not support returns null and is reported once. */
export class Nvml {
  readonly #library: Library;
  readonly #gate: CallGate;
  readonly #report: (note: string) => void;
  readonly #reported = new Set<string>();
  /** By target: calls that are made when the present turn of the event loop ends. */
  readonly #batches = new Map<string, Batch>();

  constructor(library: Library, gate: CallGate, report: (note: string) => void) {
    this.#library = library;
    this.#gate = gate;
    this.#report = report;
  }

  /**
   * Makes one call for a GPU (or `DRIVER_TARGET`). Null if the driver lacks the function or the GPU does not support
   * it. Rejects with a `DriverError` for every other failure.
   */
  async ask<T>(target: string, question: Question<T>): Promise<T | null> {
    return this.#answer(target, question, NO_CODES);
  }

  /**
   * Makes several calls for one GPU with one turn of the gate, together with all others for it that begin at the same
   * time: the time limit of the gate is for all of them. Rejects if the gate does; else each answer settles by itself,
   * as by `ask`.
   */
  async askAll<T extends readonly unknown[]>(target: string, questions: Questions<T>): Promise<Answers<T>> {
    const calls = questions.map((question) => {
      const { names, parameters, args } = question;
      const name = names.find((known) => this.#library.has(known, parameters));
      return name === undefined ? null : { name, parameters, args };
    });
    const possible = calls.filter((call) => call !== null);
    const batch = this.#batchOf(target);
    const first = batch.calls.push(...possible) - possible.length;
    const results = await batch.results;
    const answers = questions.map((question, at) => {
      const call = calls[at] ?? null;
      const code = call === null ? undefined : results?.[first + possible.indexOf(call)];
      const codes = call === null || code === undefined ? NO_CODES : new Map([[call.name, code]]);
      return this.#answer(target, question, codes);
    });
    // A caller that gives up at the first error leaves the others unread.
    for (const answer of answers) answer.catch(() => undefined);
    return answers as Answers<T>;
  }

  #batchOf(target: string): Batch {
    const open = this.#batches.get(target);
    if (open !== undefined) return open;
    const calls: FunctionCall[] = [];
    const results = Promise.resolve().then(() => {
      this.#batches.delete(target);
      return this.#gate.run(target, () => this.#library.callAll(calls));
    });
    const batch = { calls, results };
    this.#batches.set(target, batch);
    return batch;
  }

  /** `codes`: results of calls that have been made, by name. */
  async #answer<T>(target: string, question: Question<T>, codes: ReadonlyMap<string, number>): Promise<T | null> {
    let why = 'the driver has no such function';
    for (const name of question.names) {
      if (!this.#library.has(name, question.parameters)) continue;
      const code =
        codes.get(name) ??
        (await this.#gate.run(target, () => this.#library.call(name, question.parameters, question.args)));
      if (code === NVML.SUCCESS) return question.read(name);
      if (code === null) continue;
      const instead = question.instead?.(code) ?? null;
      if (instead !== null) return instead;
      if (!isUnsupported(code)) throw errorOf(`${name} of ${target}`, code);
      why = meaning(code);
    }
    this.#miss(target, question, why);
    return null;
  }

  /** Like `ask`, for a result that is indispensable. */
  async require<T>(target: string, question: Question<T>): Promise<T> {
    const answer = await this.ask(target, { ...question, feature: null });
    if (answer === null) throw errorOf(`${question.names[0] ?? ''} of ${target}`, NVML.NOT_SUPPORTED);
    return answer;
  }

  #miss(target: string, question: Question<unknown>, why: string): void {
    if (question.feature === null) return;
    const note =
      target === DRIVER_TARGET ? `no ${question.feature}: ${why}` : `${target}: no ${question.feature}: ${why}`;
    if (this.#reported.has(note)) return;
    this.#reported.add(note);
    this.#report(note);
  }
}
