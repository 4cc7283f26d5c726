import { join } from 'node:path';
import { test } from 'tap';
import { runPod, startedNode } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { scratchDirectory } from '../scratch.js';
import { runExample } from './example.js';

test('the example of a reader prints each container of a node with its limits', async (t) => {
  const node = await startedNode(t);
  await runPod(node, simplePod(30, 16));
  const { status, stdout, stderr } = await runExample('display-reader.mjs', [node.config.displaySocket]);
  t.equal(stderr, '');
  t.equal(status, 0);
  t.match(stdout, /^simulated GPU \d: default\/\S+\/main uses 0 of 30 cores, 0 of 4096 MiB$/mu);
});

test('the example of a reader says which socket does not answer', async (t) => {
  const socket = join(await scratchDirectory(t), 'missing.sock');
  const { status, stderr } = await runExample('display-reader.mjs', [socket]);
  t.equal(status, 1);
  t.match(stderr, `the agent did not answer on ${socket}`);
});
