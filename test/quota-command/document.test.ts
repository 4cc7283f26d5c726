import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';
import { MAIN } from '../harness/programs.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

interface Block {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

function blocksOf(document: string): readonly Block[] {
  return [...document.matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(([, language = '', file = '', text = '']) => ({
    language,
    file,
    text,
  }));
}

function run(directory: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.once('error', reject);
    child.once('close', () => resolve(output));
  });
}

test('the examples of the document print the output that it shows', async (t) => {
  const directory = await scratchDirectory(t);
  const blocks = blocksOf(await readFile(join(repository, 'docs/reference/quota.md'), 'utf8'));
  const files = blocks.filter(({ file }) => file !== '');
  t.equal(files.length, 3);
  for (const { file, text } of files) await writeFile(join(directory, file), text);
  const consoles = blocks.filter(({ language }) => language === 'console');
  t.equal(consoles.length, 3);
  for (const { text } of consoles) {
    const [first = '', ...expected] = text.split('\n');
    t.equal(await run(directory, first.replace(/^\$ gpu-manager /, '').split(' ')), expected.join('\n'), first);
  }
});
