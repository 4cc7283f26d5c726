import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MirrorPlan } from '../../../src/agent/libraries/mirror-plan.js';
import { applyMirror } from '../../../src/agent/libraries/mirror.js';

// Switches the mirror of `<scratch>/nvidia` between two drivers of 40 libraries until it is killed; prints "ready"
// once there is one.
const scratch = process.argv[2] ?? '';
const reason = 'test';

function planOf(driver: string, version: string): MirrorPlan {
  const libraries = Array.from({ length: 40 }, (_, index) => {
    const fileName = `lib${index}.so.${driver}`;
    const path = join(scratch, driver, fileName);
    writeFileSync(path, `driver ${driver}`);
    return { fileName, path, identity: driver };
  });
  const steps = libraries.map((from) => ({ kind: 'copy' as const, to: `lib64/${from.fileName}`, from, reason }));
  return {
    version,
    driverVersion: driver,
    steps: [{ kind: 'directory', to: 'lib64', reason }, ...steps],
    leftOut: [],
    missing: [],
  };
}

for (const driver of ['535', '580']) mkdirSync(join(scratch, driver), { recursive: true });
for (let turn = 0; ; turn += 1) {
  const driver = turn % 2 === 0 ? '535' : '580';
  await applyMirror(join(scratch, 'nvidia'), planOf(driver, `${driver}-${process.pid}-${turn}`));
  if (turn === 0) process.stdout.write('ready\n');
}
