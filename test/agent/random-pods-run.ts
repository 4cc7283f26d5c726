/**
 * Admits random pods on a node without a test around it: tap follows every asynchronous operation of a test, which
 * doubles the time.
 *
 *     node random-pods-run.js known|unknown COUNT SEED      `known`: pods are known from the API server too; prints the outcome
 */
import { fastDirectory } from '../scratch.js';
import { generator } from '../generator.js';
import { cards } from './gpus.js';
import { startedNode } from './node.js';
import { admitRandomPods } from './random-pods.js';

const GPUS = 4;

const [knowledge, count, seed] = process.argv.slice(2);
const random = generator(Number(seed));
const ends: (() => Promise<void>)[] = [];
const scope = { teardown: (end: () => Promise<void>): void => void ends.unshift(end) };
const node = await startedNode(scope, {
  directory: await fastDirectory(scope),
  gpus: cards(GPUS),
  kubelet: { order: () => (random() < 0.5 ? ['core', 'memory'] : ['memory', 'core']) },
  knowsPods: knowledge === 'known',
});
try {
  console.log(JSON.stringify(await admitRandomPods({ node, random, count: Number(count) })));
} finally {
  for (const end of ends) await end();
}
