import { readFileSync } from 'node:fs';
import { test } from 'tap';

const TEXTS = ['ink', 'quiet', 'accent', 'second', 'good', 'warn', 'bad'];
const GROUNDS = ['ground', 'surface', 'sunken'];

/** WCAG 2.2, success criterion 1.4.3. */
const LEAST = 4.5;

const style = readFileSync(new URL('../../../src/page/parts/style.css', import.meta.url), 'utf8');
const colours = new Map(
  [...style.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/gu)].map(
    ([, name = '', light = '', dark = '']) => [name, { light, dark }],
  ),
);

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

for (const mode of ['light', 'dark'] as const)
  test(`every colour of text has a contrast of at least ${LEAST} to every ground in ${mode} mode`, (t) => {
    for (const text of TEXTS)
      for (const ground of GROUNDS) {
        const found = contrast(colours.get(text)?.[mode] ?? '', colours.get(ground)?.[mode] ?? '');
        t.ok(found >= LEAST, `${text} on ${ground}: ${found.toFixed(2)}`);
      }
    t.end();
  });
