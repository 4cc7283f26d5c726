import { DRIVER_TARGET, type CallGate } from './call-gate.js';
import type { Library } from './library.js';
import { NVML, errorOf, isUnsupported, meaning } from './nvml-code.js';
import type { NvmlCall } from './nvml-call.js';

type NvmlCalls<T extends readonly unknown[]> = { readonly [At in keyof T]: NvmlCall<T[At]> };
type Answers<T extends readonly unknown[]> = { readonly [At in keyof T]: Promise<T[At] | null> };

/** Calls NVML through the gate. A call that this driver or GPU does not support returns null and is reported once. */
export class Nvml {
  readonly #library: Library;
  readonly #gate: CallGate;
  readonly #report: (note: string) => void;
  readonly #reported = new Set<string>();

  constructor(library: Library, gate: CallGate, report: (note: string) => void) {
    this.#library = library;
    this.#gate = gate;
    this.#report = report;
  }

  /**
   * Makes one call for a GPU (or `DRIVER_TARGET`). Null if the driver lacks the function or the GPU does not support
   * it. Rejects with a `DriverError` for every other failure.
   */
  async ask<T>(target: string, call: NvmlCall<T>): Promise<T | null> {
    let why = 'the driver has no such function';
    for (const name of call.names) {
      if (!this.#library.has(name, call.parameters)) continue;
      const code = await this.#gate.run(target, () => this.#library.call(name, call.parameters, call.args));
      if (code === NVML.SUCCESS) return call.read(name);
      if (code === null) continue;
      const instead = call.instead?.(code) ?? null;
      if (instead !== null) return instead;
      if (!isUnsupported(code)) throw errorOf(`${name} of ${target}`, code);
      why = meaning(code);
    }
    this.#miss(target, call, why);
    return null;
  }

  /** Makes several calls for one GPU at once; each answer settles by itself, as by `ask`. */
  askAll<T extends readonly unknown[]>(target: string, calls: NvmlCalls<T>): Answers<T> {
    const answers = calls.map((call) => this.ask(target, call));
    // A caller that gives up at the first error leaves the others unread.
    for (const answer of answers) answer.catch(() => undefined);
    return answers as Answers<T>;
  }

  /** Like `ask`, for a result that is indispensable. */
  async require<T>(target: string, call: NvmlCall<T>): Promise<T> {
    const answer = await this.ask(target, { ...call, feature: null });
    if (answer === null) throw errorOf(`${call.names[0] ?? ''} of ${target}`, NVML.NOT_SUPPORTED);
    return answer;
  }

  #miss(target: string, call: NvmlCall<unknown>, why: string): void {
    if (call.feature === null) return;
    const note = target === DRIVER_TARGET ? `no ${call.feature}: ${why}` : `${target}: no ${call.feature}: ${why}`;
    if (this.#reported.has(note)) return;
    this.#reported.add(note);
    this.#report(note);
  }
}
