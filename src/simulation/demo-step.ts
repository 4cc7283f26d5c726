/** One step of the demonstration: its title, and its result. Throws a WrongAnswer if the result is wrong. */
export interface Step<T> {
  readonly title: string;
  readonly run: (stage: T) => Promise<string>;
}

export class WrongAnswer extends Error {}

export function expect(condition: boolean, otherwise: string): void {
  if (!condition) throw new WrongAnswer(otherwise);
}
