// Makes docs/demo.svg, ten seconds of the demo in a terminal, from its output:
//
//     gpu-manager demo --once | node scripts/demo-picture.mjs > docs/demo.svg
//
// Each line appears at its turn, by CSS; a reader without animations sees all of them.
import { text } from 'node:stream/consumers';

const [WIDTH, LINE, MARGIN] = [920, 21, 18];
const COLUMNS = 110;
const SECONDS = 10;

const steps = (await text(process.stdin)).split('\n').filter((line) => /^(ok|FAILED) /u.test(line));
if (steps.length === 0 || steps.some((line) => line.startsWith('FAILED')))
  throw new Error('expected the steps of gpu-manager demo --once on standard input, all of them ok');
const lines = [{ prompt: true, text: 'npm run demo' }, ...steps.map((step) => ({ text: step.replace(/^ok +/u, '') }))];
const height = lines.length * LINE + 2 * MARGIN;

const escaped = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const short = (words) => (words.length > COLUMNS ? `${words.slice(0, COLUMNS - 1)}…` : words);

const rows = lines.map(({ prompt = false, text: words }, at) => {
  const delay = ((at / lines.length) * SECONDS).toFixed(2);
  const mark = prompt ? '<tspan class="mark">$</tspan>' : '<tspan class="ok">✓</tspan>';
  return `<text x="${MARGIN}" y="${MARGIN + (at + 0.75) * LINE}" style="animation-delay:${delay}s">${mark} ${escaped(short(words))}</text>`;
});

process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>The demo in a terminal: ${steps.length} steps, from the first share of a GPU to resource claims</title>
<style>
rect { fill: #14181f }
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d7dce4; white-space: pre }
.ok { fill: #5bbf7a } .mark { fill: #8aa0c0 }
@media (prefers-reduced-motion: no-preference) {
  text { opacity: 0; animation: appear 0.2s forwards }
  @keyframes appear { to { opacity: 1 } }
}
</style>
<rect width="100%" height="100%" rx="8"/>
${rows.join('\n')}
</svg>
`);
