import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { commitOf } from '../../bench/summary/machine.js';
import { scratchDirectory } from '../scratch.js';

test('a report that a run writes into the repository does not make it another commit', async (t) => {
  const repository = await scratchDirectory(t);
  const git = (...args: readonly string[]): void => {
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: repository });
  };
  const write = (path: string, text: string): void => writeFileSync(join(repository, path), text);
  mkdirSync(join(repository, 'docs/benchmarks'), { recursive: true });
  write('code.ts', 'one');
  write('docs/benchmarks/report.json', 'one');
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message=Begin');
  const commit = commitOf('docs/benchmarks', repository);
  t.match(commit, /^[0-9a-f]{7,}$/);
  write('docs/benchmarks/report.json', 'two');
  t.equal(commitOf('docs/benchmarks', repository), commit);
  t.equal(commitOf('bench', join(repository, 'docs')), `${commit}-dirty`, 'another folder has the reports');
  t.equal(commitOf('/elsewhere', repository), `${commit}-dirty`, 'the reports are outside the repository');
  write('code.ts', 'two');
  t.equal(commitOf('docs/benchmarks', repository), `${commit}-dirty`, 'the code has changed');
});

test('code outside a repository has no commit', async (t) => {
  t.equal(commitOf('out', await scratchDirectory(t)), null);
});
