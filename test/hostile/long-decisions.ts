import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import { holdsTurns } from '../harness/turn-limit.js';
import { pod, type PodObject } from '../scheduler/objects.js';

/** Other work on the machine may lengthen the calls of one series, and seldom those of five. */
const TRIES = 5;
/** How many times longer the median call takes beside long decisions. */
const MOST_RATIO = 10;
interface Program {
  readonly url: string;
  readonly names: readonly string[];
  readonly tell: (order: 'start' | 'stop') => Promise<number>;
}

async function start(t: Test, nodes: number, offer: Offer): Promise<Program> {
  const child = fork(fileURLToPath(new URL('./extender-program.js', import.meta.url)), [String(nodes), offer]);
  t.teardown(() => child.disconnect());
  const [port] = (await once(child, 'message')) as [number];
  return {
    url: `http://127.0.0.1:${port}`,
    names: Array.from({ length: nodes }, (_, at) => `n${at}`),
    async tell(order) {
      const replied = once(child, 'message');
      child.send(order);
      return ((await replied) as [number])[0];
    },
  };
}

async function call(url: string, verb: string, body: string): Promise<{ text: string; ms: number }> {
  const started = performance.now();
  const response = await fetch(`${url}/scheduler/${verb}`, { method: 'POST', body });
  const text = await response.text();
  return { text, ms: performance.now() - started };
}

const filterBody = (wanted: PodObject, names: readonly string[]): string =>
  JSON.stringify({ Pod: wanted, Nodes: null, NodeNames: names });

const preemptBody = (wanted: PodObject, names: readonly string[]): string =>
  JSON.stringify({
    Pod: wanted,
    NodeNameToMetaVictims: Object.fromEntries(
      names.map((name, at) => [name, { Pods: [{ UID: `uid-v${at}-0` }], NumPDBViolations: 0 }]),
    ),
  });

const unlike = (count: number): [number, number][] =>
  Array.from({ length: count }, (_, at) => [48 + ((at * 7) % 48), 5 + ((at * 11) % 29)]);

/** Each with a name that says why its placement takes long. */
const HOSTILE: readonly (readonly [what: string, wanted: PodObject])[] = [
  ['16 containers of unlike sizes', pod('unlike', unlike(16), { priority: 9 })],
  ['16 containers of unlike sizes that fit nowhere', pod('nowhere', unlike(16).map(([cores]) => [cores, 40]), { priority: 9 })], // prettier-ignore
  ['256 containers', pod('many', Array.from({ length: 256 }, (_, at) => [1 + (at % 9), 1 + (at % 3)]), { priority: 9 })], // prettier-ignore
  ['two containers of eight whole GPUs with much memory', pod('sets', [[800, 470], [800, 470]], { priority: 9 })], // prettier-ignore
  [
    '5,000 containers',
    pod(
      'thousands',
      Array.from({ length: 5_000 }, () => [1, 1]),
    ),
  ],
];

type Offer = 'all' | 'best';
type Verb = 'predicates' | 'prioritize' | 'preempt';

export interface Decisions {
  readonly nodes: number;
  readonly offers: readonly Offer[];
  readonly verbs: readonly Verb[];
  /** Of each series of which the median is taken. */
  readonly calls: number;
}

/**
 * Tests with pods that the API server accepts and whose placement takes long to compute, on so many nodes of 16 GPUs,
 * each in another state: other calls and probes do not wait for them.
 */
export function testLongDecisions({ nodes, offers, verbs, calls }: Decisions): void {
  for (const offer of offers)
    void test(`no turn of the extender takes long, whatever a pod requests (--offer ${offer})`, async (t) => {
      const program = await start(t, nodes, offer);
      for (const [what, wanted] of offer === 'best' ? HOSTILE : HOSTILE.slice(0, 1))
        for (const verb of verbs) await holdsTurnsOfPod(t, program, `${what}, ${verb}`, verb, wanted);
    });
  void test('other pods and probes are answered while a long decision is computed', async (t) =>
    answersBeside(t, await start(t, nodes, 'best'), calls));
}

async function holdsTurnsOfPod(
  t: Test,
  { url, names, tell }: Program,
  what: string,
  verb: Verb,
  wanted: PodObject,
): Promise<void> {
  const body = verb === 'preempt' ? preemptBody(wanted, names) : filterBody(wanted, names);
  let [ms, bytes] = [Infinity, 0];
  const measure = async (): Promise<number> => {
    await tell('start');
    const answered = await call(url, verb, body);
    [ms, bytes] = [Math.min(ms, answered.ms), answered.text.length];
    return tell('stop');
  };
  const details = (): string => `(${ms.toFixed(0)} ms for the call, ${bytes} bytes)`;
  await holdsTurns(t, what, measure, { details });
}

async function answersBeside(t: Test, { url, names }: Program, calls: number): Promise<void> {
  const plain = async (at: number): Promise<number> => {
    const body = filterBody(pod(`plain-${at}`, [[30, 2]]), names);
    return (await call(url, 'predicates', body)).ms;
  };
  for (let at = 0; at < 10; at++) await plain(at);
  const series = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let at = 0; at < calls; at++) times.push(await plain(at));
    return times.sort((a, b) => a - b);
  };
  const at = (times: readonly number[], quantile: number): number =>
    times[Math.floor(times.length * quantile)] as number;
  let ratio = Infinity;
  // Alone it takes milliseconds, and a long decision hundreds of them; other work on the machine lengthens each turn.
  for (let tries = 0; tries < TRIES && ratio >= MOST_RATIO; tries++) {
    const alone = await series();
    let isOver = false;
    let decisions = 0;
    const probes: number[] = [];
    const attacker = (async () => {
      for (; !isOver; decisions++) {
        const wanted = pod(`unlike-${decisions}`, unlike(16).map(([cores, blocks]) => [cores, blocks + (decisions % 7)])); // prettier-ignore
        await call(url, 'predicates', filterBody(wanted, names));
      }
    })();
    const prober = (async () => {
      while (!isOver) {
        const started = performance.now();
        t.equal((await fetch(`${url}/healthz`)).status, 200);
        probes.push(performance.now() - started);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const beside = await series();
    isOver = true;
    await Promise.all([attacker, prober]);
    const slowest = Math.max(...probes);
    t.comment(`another pod alone: median ${at(alone, 0.5).toFixed(1)}, p99 ${at(alone, 0.99).toFixed(1)} ms`);
    t.comment(
      `beside ${decisions} long decisions: ${at(beside, 0.5).toFixed(1)}, p99 ${at(beside, 0.99).toFixed(1)} ms`,
    );
    t.comment(`slowest of ${probes.length} probes: ${slowest.toFixed(1)} ms`);
    ratio = at(beside, 0.5) / at(alone, 0.5);
  }
  t.ok(ratio < MOST_RATIO, 'another pod waits for some turns of a long decision, not for its end');
}
