import { frameOf } from './frame.js';
import { paint } from './paint.js';
import type { Sample } from './sample.js';
import { START, withSample } from './state.js';
import { plainText } from './text.js';

/** A sample as text, with all its slices. */
export function printed(sample: Sample, columns: number, color: boolean): string {
  const { lines } = frameOf(withSample(START, sample), { columns, rows: Infinity });
  return lines.map((line) => `${(color ? paint(line, color) : plainText(line)).trimEnd()}\n`).join('');
}
