import type { Output } from './machine.js';

/** The report of a program that prints for people: each line must be the same alone and in a slice. */
export function printedLines({ stdout }: Output): string {
  return stdout
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line, index) => `is line ${index + 1}: ${line}`)
    .join('\n');
}

/** Ends with an error if a program went on after an error that its users would see. */
export function refuseTraceback({ stdout, stderr }: Output): void {
  const at = `${stdout}\n${stderr}`.split('\n');
  const start = at.findIndex((line) => line.startsWith('Traceback '));
  if (start >= 0)
    throw new Error(`prints a traceback: ${at.slice(start + 1).find((line) => !line.startsWith(' ')) ?? ''}`);
}
