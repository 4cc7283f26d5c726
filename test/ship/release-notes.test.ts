import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';
import { ROOT } from './rendering.js';

const notes = (
  ...args: readonly string[]
): { readonly status: number | null; readonly stdout: string; stderr: string } =>
  spawnSync(process.execPath, [join(ROOT, 'scripts/release-notes.mjs'), ...args], { encoding: 'utf8' });

const CHANGELOG = `# Changelog

## Unreleased

### Added

- Not yet.

## 1.2.0 - 2026-01-02

### Fixed

- This.

## 1.2.0-rc.1 - 2026-01-01

- That.
`;

test('the notes of a release are its section of the changelog', async (t) => {
  const path = join(await scratchDirectory(t), 'CHANGELOG.md');
  writeFileSync(path, CHANGELOG);
  t.match(notes('1.2.0', path), { status: 0, stdout: '### Fixed\n\n- This.\n', stderr: '' });
  t.match(notes('1.2.0-rc.1', path), { status: 0, stdout: '- That.\n' });
  t.match(notes('1.3.0', path), {
    status: 1,
    stdout: '',
    stderr: /no entries for 1\.3\.0, but for Unreleased, 1\.2\.0/,
  });
  for (const wrong of [['v1.2.0', path], ['Unreleased', path], []])
    t.match(notes(...wrong), { status: 2, stderr: /expected a version/ });
  t.match(notes('0.1.0'), { status: 0, stdout: /^### Added$/m }, 'of the changelog of this project');
});
