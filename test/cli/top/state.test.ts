import fc from 'fast-check';
import { test } from 'tap';
import type { ProcessSnapshot } from '../../../src/agent/node/process-document.js';
import { frameOf, type Frame, type Size } from '../../../src/cli/top/frame.js';
import { InputReader, type InputEvent, type KeyName } from '../../../src/cli/top/input.js';
import type { Processes, Sample } from '../../../src/cli/top/sample.js';
import {
  listOf,
  react,
  shownSlices,
  START,
  withOutage,
  withProcesses,
  withSample,
  type TopState,
} from '../../../src/cli/top/state.js';
import { columnsOf, columnsOfLine, cut, cutMiddle, fillLine, plainText, wrap } from '../../../src/cli/top/text.js';
import { allocation, gpu, GIB, node, slice } from '../../agent/display/fixture.js';

/** What happens to `top`, one thing after another. */
type Step =
  | { readonly kind: 'input'; readonly event: InputEvent }
  | { readonly kind: 'sample'; readonly sample: Sample }
  | { readonly kind: 'outage' }
  | { readonly kind: 'processes'; readonly processes: Processes };

const KEYS: readonly KeyName[] = [
  'up',
  'down',
  'left',
  'right',
  'page-up',
  'page-down',
  'home',
  'end',
  'enter',
  'escape',
  'backspace',
  'clear',
  'redraw',
];

/** Texts as users choose them: wide characters, characters without width, control characters. */
const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(
    '模型-訓練-三',
    '👩‍👩‍👧‍👦 team',
    'e\u0301e\u0301',
    '\u001b[2J\r\n',
    'a-long-name-of-a-workload-7c9d8b6f5-x2x4z',
  ),
);

const gpus = Array.from({ length: 20 }, (_, at) => gpu(at, { usedPercent: at, usedMemoryBytes: at * GIB }));

const sample: fc.Arbitrary<Sample> = fc
  .record({
    atMs: fc.integer({ min: 0, max: 2_000_000_000_000 }),
    title: text,
    names: fc.uniqueArray(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...'abcdefghij') }, text), {
      maxLength: 16,
    }),
    use: fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 16, maxLength: 16 }),
    gpuCount: fc.constantFrom(1, 2, 8, 16, 20),
    nodes: fc.constantFrom(1, 1, 3),
    notReady: fc.array(text, { maxLength: 5 }),
  })
  .map(({ atMs, title, names, use, gpuCount, nodes, notReady }) => ({
    atMs,
    title,
    nodes: Array.from({ length: nodes }, (_, at) => ({
      name: `node-${at}`,
      problem: at === 2 ? title : '',
      snapshot:
        at === 2
          ? null
          : node({
              atMs,
              notReady,
              gpus: gpus.slice(0, gpuCount),
              allocations: names
                .filter((__, place) => place % nodes === at || nodes === 1)
                .map((name, place) =>
                  allocation(
                    name,
                    [slice(gpus[place % gpuCount]!, { usedPercent: use[place] ?? 0, pids: [place, place + 1] })],
                    { id: JSON.stringify(name) },
                  ),
                ),
            }),
    })),
  }));

const processes: fc.Arbitrary<Processes> = fc.oneof(
  text.map((reason) => ({ known: false as const, reason })),
  fc
    .array(fc.record({ pid: fc.integer({ min: 1, max: 9 }), user: fc.option(text), command: fc.option(text) }), {
      maxLength: 9,
    })
    .map((some) => ({
      known: true as const,
      document: {
        atMs: 1,
        allocation: 'a',
        omitted: some.length % 2,
        processes: some.map((one, at): ProcessSnapshot => ({
          ...one,
          pid: one.pid * 10 + at,
          gpuUuid: gpus[at % 2]!.uuid,
          gpuIndex: at % 2,
          containerPid: at,
          uid: 0,
          usedMemoryBytes: at,
          usedPercent: null,
        })),
      },
    })),
);

const event: fc.Arbitrary<InputEvent> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...KEYS).map((name) => ({ kind: 'key' as const, name })) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(...'jkgGcmtnusrp/?ab3 é模').map((one) => ({ kind: 'text' as const, text: one })),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('press' as const), row: fc.nat(50), column: fc.nat(200) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(1 as const, -1 as const).map((lines) => ({ kind: 'wheel' as const, lines })),
  },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: event.map((one) => ({ kind: 'input' as const, event: one })) },
  { weight: 2, arbitrary: sample.map((one) => ({ kind: 'sample' as const, sample: one })) },
  { weight: 1, arbitrary: fc.constant({ kind: 'outage' as const }) },
  { weight: 1, arbitrary: processes.map((one) => ({ kind: 'processes' as const, processes: one })) },
);

/** One step, or a selection and a filter that hides most rows. */
const steps: fc.Arbitrary<readonly Step[]> = fc.oneof(
  { weight: 8, arbitrary: step.map((one) => [one]) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('j/b', 'jj/c', 'jjj/gpu3')
      .map((keys) => [...keys].map((text): Step => ({ kind: 'input', event: { kind: 'text', text } }))),
  },
);

const size: fc.Arbitrary<Size> = fc.record({
  columns: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(80, 100, 120, 200)),
  rows: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(24, 50)),
});

function after(state: TopState, what: Step, on: Size): TopState {
  switch (what.kind) {
    case 'input':
      return react(state, what.event, frameOf(state, on).targets).state;
    case 'sample':
      return withSample(state, what.sample);
    case 'outage':
      return withOutage(state, 'no agent \u001b[2J');
    case 'processes':
      return state.open === null ? state : withProcesses(state, state.open.row.key, what.processes);
  }
}

/** One step, and what it left. */
interface Moment {
  readonly before: TopState;
  readonly step: Step;
  readonly state: TopState;
  readonly size: Size;
  readonly frame: Frame;
}

type Rule = (moment: Moment) => boolean;

const here = ({ slices }: TopState, key: string | null): boolean => slices.some((row) => row.key === key);

const RULES: Readonly<Record<string, Rule>> = {
  'no drawing is larger than the terminal': ({ frame: { lines }, size: on }) =>
    lines.length <= on.rows && lines.every((line) => columnsOfLine(line) <= on.columns),
  'no drawing has control characters': ({ frame: { lines } }) => !lines.some((line) => /\p{Cc}/u.test(plainText(line))),
  'the selected row is on the screen': ({ state, frame: { targets }, size: { rows } }) => {
    const { key } = listOf(state);
    const shown = [...targets.rows].find(([, one]) => one === key)?.[0] ?? -1;
    return key === null || state.showsHelp || (shown >= 0 && shown < rows);
  },
  'something is selected once the user has selected it, as long as something is shown': ({ state }) =>
    state.list.wanted === null || state.list.key !== null || shownSlices(state).length === 0,
  'no sample moves the selection, unless its container has ended or what hid it has': ({ before, step: what, state }) =>
    what.kind !== 'sample' ||
    before.list.key === null ||
    state.list.key === before.list.key ||
    state.list.key === before.list.wanted ||
    !here(state, before.list.key) ||
    !here(state, before.list.wanted),
  'what the user selected is selected whenever it is shown': ({ state }) =>
    !shownSlices(state).some(({ key }) => key === state.list.wanted) || state.list.key === state.list.wanted,
  'no sample and no filter changes what the user selected, as long as it is there': ({ before, step: what, state }) =>
    (what.kind === 'input' && !(before.typing && what.event.kind === 'text')) ||
    before.list.wanted === null ||
    !here(state, before.list.wanted) ||
    state.list.wanted === before.list.wanted,
  'the end of what the user selected is said': ({ before, step: what, state }) =>
    what.kind !== 'sample' ||
    before.list.wanted === null ||
    here(state, before.list.wanted) ||
    / has ended$/.test(state.notice ?? ''),
  'what the filter hides is said': ({ state }) => {
    if (state.open !== null || state.showsHelp || state.typing || state.notice !== null) return true;
    const last = plainText(frameOf(state, { columns: 1_000, rows: 3 }).lines.at(-1) ?? []);
    const { key, wanted } = state.list;
    return last.endsWith(' is hidden by the filter') === (wanted !== null && key !== wanted);
  },
  'without the filter, the selection is what it was': ({ state, size: on }) => {
    const { key, wanted, filter } = state.list;
    if (state.open !== null || state.showsHelp || filter === '' || key === wanted) return true;
    return after(state, { kind: 'input', event: { kind: 'key', name: 'escape' } }, on).list.key === wanted;
  },
  'old figures are grey, and say from when they are': ({ state, size: on, frame: { lines } }) => {
    if (state.outage === null || on.rows < 6 || on.columns < 30 || state.showsHelp) return true;
    const [first = [], , ...others] = lines;
    const isGrey = others
      .slice(0, -1)
      .every((line) => line.every(({ style }) => style === 'quiet' || style === 'selected' || style === undefined));
    return isGrey && /as of \d\d:\d\d:\d\d UTC$/.test(plainText(first));
  },
};

test('whatever happens in whatever order on terminals of any size', (t) => {
  fc.assert(
    fc.property(sample, fc.array(fc.tuple(steps, size), { maxLength: 20 }), (first, all) => {
      let before = withSample(START, first);
      for (const [what, on] of all.flatMap(([some, on]) => some.map((one) => [one, on] as const))) {
        const state = after(before, what, on);
        const moment = { before, step: what, state, size: on, frame: frameOf(state, on) };
        for (const [rule, holds] of Object.entries(RULES)) if (!holds(moment)) throw new Error(rule);
        before = state;
      }
    }),
    { numRuns: 60 },
  );
  t.end();
});

test('texts are cut to columns and not to characters', (t) => {
  fc.assert(
    fc.property(text, fc.nat(20), (chosen, columns) => {
      for (const short of [cut(chosen, columns), cutMiddle(chosen, columns)])
        if (columnsOf(short) > columns) throw new Error(short);
      if (columnsOfLine(fillLine([{ text: chosen }], columns)) !== columns) throw new Error('not filled');
      if (wrap(chosen, columns + 2, 5).some((line) => columnsOf(line) > columns + 2)) throw new Error('not wrapped');
    }),
  );
  t.equal(cutMiddle('default/train-7c9d8b6f5-x2x4z/main', 20), 'default/tr…2x4z/main');
  t.equal(cut('模型訓練', 5), '模型…');
  t.same(wrap('abcdefgh', 3, 2), ['abc', 'de…']);
  t.end();
});

test('keys and the mouse are read from any pieces of the stream', (t) => {
  const read = (...pieces: readonly string[]): InputEvent[] => {
    const reader = new InputReader();
    return [...pieces.flatMap((piece) => reader.read(piece)), ...reader.flush()];
  };
  const keys = (...names: readonly KeyName[]) => names.map((name) => ({ kind: 'key' as const, name }));
  t.same(
    read('\u001b[A\u001bOB\u001b[5~\u001b[6~\u001b[1;5H\u001b[4~\r\u007f\u0003'),
    keys('up', 'down', 'page-up', 'page-down', 'home', 'end', 'enter', 'backspace', 'interrupt'),
  );
  t.same(read('é模'), [
    { kind: 'text', text: 'é' },
    { kind: 'text', text: '模' },
  ]);
  t.same(read('\u001b[<0;5;7M\u001b[<0;5;7m\u001b[<64;1;1M\u001b[<69;1;1M\u001b[<35;1;1M\u001b[<0;0;0M'), [
    { kind: 'press', row: 6, column: 4 },
    { kind: 'wheel', lines: -1 },
    { kind: 'wheel', lines: 1 },
  ]);
  t.same(read('\u001b'), keys('escape'));
  t.same(read('\u001bq'), [...keys('escape'), { kind: 'text', text: 'q' }]);
  t.same(read('\u001b[?1;2c\u001b[M\u001b[200~'), [], 'answers and sequences without a meaning');
  const stream = fc.array(
    fc.constantFrom(
      '\u001b',
      '[',
      'O',
      '<',
      '0',
      ';',
      '1',
      'M',
      'm',
      'A',
      '~',
      'q',
      '\r',
      '模',
      '\u001b[<0;3;4M',
      '\u001b[A',
    ),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(stream, fc.array(fc.nat(30), { maxLength: 5 }), (parts, cuts) => {
      const all = parts.join('');
      const places = [0, ...cuts.filter((at) => at < all.length).sort((a, b) => a - b), all.length];
      const pieces = places.slice(1).map((to, at) => all.slice(places[at], to));
      if (JSON.stringify(read(...pieces)) !== JSON.stringify(read(all))) throw new Error(JSON.stringify(pieces));
    }),
  );
  t.end();
});
