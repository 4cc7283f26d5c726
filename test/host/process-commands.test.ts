import { execFileSync } from 'node:child_process';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { ProcessCommands } from '../../src/host/process-commands.js';
import { parsePasswd, userNames } from '../../src/host/user-names.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { scratchDirectory } from '../scratch.js';

test('a command line that does not answer stops nobody else for longer than its time limit', async (t) => {
  const proc = await scratchDirectory(t);
  for (const pid of ['1', '2']) await mkdir(join(proc, pid));
  // Reading a pipe without a writer waits, as reading the memory of a process does that holds its lock.
  const hanging = join(proc, '1', 'cmdline');
  execFileSync('mkfifo', [hanging]);
  await writeFile(join(proc, '2', 'cmdline'), 'a\0b c\0\0\0');
  const clock = new ManualClock();
  const commands = new ProcessCommands(clock, proc);
  const both = Promise.all([commands.of(1), commands.of(2)]);
  let answers: unknown = null;
  void both.then((given) => (answers = given));
  await eventually(() => {
    clock.advance(500);
    return answers;
  });
  t.same(answers, [null, null]);
  t.equal(await commands.of(2), null, 'nothing else is read while it hangs');
  const writer = await open(hanging, 'w');
  await writer.close();
  await eventually(async () => (await commands.of(2)) === 'a b c', 'the other command line');
  t.equal(await commands.of(3), null, 'a process that does not exist');
});

test('long command lines are cut', async (t) => {
  const proc = await scratchDirectory(t);
  await mkdir(join(proc, '1'));
  await writeFile(join(proc, '1', 'cmdline'), 'x'.repeat(100_000));
  t.equal((await new ProcessCommands(new ManualClock(), proc).of(1))?.length, 1_024);
});

test('user names come from the first file that can be read', async (t) => {
  const directory = await scratchDirectory(t);
  const file = join(directory, 'passwd');
  await writeFile(
    file,
    'root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n# none\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n',
  );
  t.same(
    [...(await userNames([join(directory, 'none'), file]))],
    [
      [0, 'root'],
      [1000, 'ann'],
    ],
  );
  t.same([...parsePasswd('')], []);
  t.equal((await userNames([join(directory, 'none')])).size, 0);
});
