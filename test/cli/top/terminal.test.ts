import { join } from 'node:path';
import { test, type Test } from 'tap';
import { displayServer } from '../../../src/agent/display/display-server.js';
import { Journal } from '../../../src/agent/node/journal.js';
import type { ProcessSnapshot } from '../../../src/agent/node/process-document.js';
import { systemClock } from '../../../src/host/clock.js';
import { allocation, gpu, GIB, node, slice, viewOf } from '../../agent/display/fixture.js';
import { MAIN } from '../../harness/programs.js';
import { noPseudoTerminal, PseudoTerminal } from '../../harness/pseudo-terminal.js';
import { scratchDirectory } from '../../scratch.js';

const options = { skip: noPseudoTerminal };

const GPUS = Array.from({ length: 16 }, (_, at) => gpu(at, { usedPercent: 50, usedMemoryBytes: 8 * GIB }));
const NAMES = Array.from({ length: 60 }, (_, at) => `pod-${String(at).padStart(2, '0')}`);

/** A display service of 16 GPUs and 60 containers, whose figures the test sets. */
async function servedNode(t: Test) {
  const socket = join(await scratchDirectory(t), 'display.sock');
  let use = (at: number): number => 60 - at;
  let names: readonly string[] = NAMES;
  const view = viewOf(() =>
    node({
      atMs: Date.now(),
      gpus: GPUS,
      allocations: names.map((name) => {
        const at = NAMES.indexOf(name);
        return allocation(name, [slice(GPUS[at % 16]!, { usedPercent: use(at), pids: [1000 + at] })]);
      }),
    }),
  );
  const processes = async (id: string) => {
    const at = NAMES.findIndex((name) => allocation(name, []).id === id);
    const process: ProcessSnapshot = {
      gpuUuid: GPUS[at % 16]!.uuid,
      gpuIndex: at % 16,
      pid: 1000 + at,
      containerPid: 7,
      uid: 1000,
      user: 'ann',
      command: `python train.py --name ${NAMES[at]} \u001b[2J\u001b]0;title\u0007 --end`,
      usedMemoryBytes: 2 * GIB,
      usedPercent: 12,
    };
    return { atMs: Date.now(), allocation: id, processes: [process], omitted: 0 };
  };
  const start = async () => {
    const server = displayServer({ socketPath: socket, view, journal: new Journal(systemClock), processes });
    await server.start();
    return server;
  };
  let server = await start();
  t.teardown(() => server.stop());
  return {
    socket,
    setUse: (next: (at: number) => number) => (use = next),
    remove: (name: string) => (names = names.filter((one) => one !== name)),
    stop: () => server.stop(),
    start: async () => (server = await start()),
  };
}

function topOn(t: Test, socket: string, more: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
  const terminal = new PseudoTerminal(
    [process.execPath, MAIN, 'top', '--delay', '0.2', '--display-socket', socket, ...more],
    { rows: 24, columns: 80, environment: { NO_COLOR: undefined, ...environment } },
  );
  t.teardown(() => terminal.close());
  return terminal;
}

/** Makes any signal 12 an error that nothing expects. */
const CRASH = encodeURIComponent("process.on('SIGUSR2', () => { throw new Error('crashed'); })");

const RESTORED = { alternate: false, cursor: true, mouse: 'none', wrap: true } as const;
const UP = '\u001b[A';
const DOWN = '\u001b[B';
const PAGE_DOWN = '\u001b[6~';
const HOME = '\u001b[H';
const END = '\u001b[F';
const ESCAPE = '\u001b';

test('top on a terminal: select, scroll, filter, processes, mouse, resize, quit', options, async (t) => {
  const served = await servedNode(t);
  const top = topOn(t, served.socket);
  await top.until('the list', () => /^default\/pod-00\/main/m.test(top.text));
  t.same(top.modes, { alternate: true, cursor: false, mouse: 'vt200', wrap: false });
  t.same(top.selected, [], 'nothing is selected before the first key');
  t.ok(top.hasColor);

  const chosen = (name: string) => () => top.selected.length === 1 && top.selected[0]?.includes(`/${name}/`) === true;
  top.press(DOWN);
  await top.until('the first row', chosen('pod-00'));
  top.press('jj' + UP + 'k' + PAGE_DOWN);
  await top.until('a page further', chosen('pod-12'));
  top.press(END);
  await top.until('the last row', chosen('pod-59'));
  t.notMatch(top.text, /pod-00/, 'the list has scrolled');

  served.setUse((at) => at);
  await top.until('another order', () => /pod-59[^]*pod-58[^]*pod-57/.test(top.text) && chosen('pod-59')());
  t.pass('the selection stays on its container when the order changes');

  top.press('\r');
  await top.until('the processes', () => /1059 ann +2\.0 GiB +12 +7 python train\.py --name pod-59/.test(top.text));
  top.press('j');
  await top.until('the whole command', () => top.text.includes('--name pod-59 ?[2J?]0;title? --end'));
  top.press(ESCAPE);
  await top.until('the list again', chosen('pod-59'));

  top.press('/gpu3 pod');
  await top.until('the filter', () => /Filter: gpu3 pod/.test(top.text) && /pod-03/.test(top.text));
  top.press('\r');
  await top.until('what is hidden', () =>
    top.text.includes('4 of 60  /gpu3 pod  default/pod-59/main is hidden by the filter'),
  );
  top.press(ESCAPE);
  await top.until('the selection from before', chosen('pod-59'));

  const line = top.lines.findIndex((text) => text.includes('/pod-57/'));
  top.press(`\u001b[<0;5;${line + 1}M\u001b[<0;5;${line + 1}m`);
  await top.until('the row that was clicked', chosen('pod-57'));
  top.press('\u001b[<65;5;15M');
  await top.until('the row that the wheel reached', chosen('pod-54'));

  top.resize(40, 120);
  await top.until(
    'the larger screen',
    () => top.lines.length === 40 && / q quit$/.test(top.lines[39] ?? '') && chosen('pod-54')(),
  );
  top.resize(10, 50);
  await top.until(
    'the smaller screen',
    () => top.lines.length === 10 && top.lines[9]?.startsWith('60 ') === true && chosen('pod-54')(),
  );

  served.remove('pod-54');
  await top.until('the end of a container', () => /pod-54\/main has ended/.test(top.text) && chosen('pod-53')());
  top.press('?');
  await top.until('the help', () => /PgUp PgDn, Space +a page/.test(top.text));
  top.press('?' + HOME);
  await top.until('the first row again', chosen('pod-59'));

  await served.stop();
  await top.until('what is wrong', () => /as of \d\d:\d\d:\d\d UTC\n! no agent answers at/.test(top.text));
  t.match(top.text, /pod-59/, 'the last figures stay');
  await served.start();
  await top.until('the agent', () => !top.text.includes('as of') && chosen('pod-59')());
  top.press('q');
  t.same(await top.ended, { code: 0, echo: true, canonical: true });
  t.same(top.modes, RESTORED);
});

test('what ends top gives the terminal back: Ctrl-C, suspending, SIGTERM, an error', options, async (t) => {
  const served = await servedNode(t);
  const started = (environment: NodeJS.ProcessEnv, ...more: string[]) => topOn(t, served.socket, more, environment);
  const shown = (terminal: PseudoTerminal) => terminal.until('the list', () => terminal.text.includes('/pod-00/'));
  const plain = started({ NO_COLOR: '1' }, '--no-mouse');
  const suspended = started({});
  const broken = started({ NODE_OPTIONS: `--import=data:text/javascript,${CRASH}` });

  await shown(plain);
  plain.press('j');
  await plain.until('the selection', () => plain.selected.length === 1);
  t.notOk(plain.hasColor);
  t.equal(plain.modes.mouse, 'none');
  plain.press('\u0003');
  t.same(await plain.ended, { code: 0, echo: true, canonical: true });
  t.same(plain.modes, RESTORED);

  await shown(suspended);
  suspended.press('\u001a');
  await suspended.until('the normal screen', () => suspended.stops === 1 && !suspended.modes.alternate);
  t.same(suspended.modes, RESTORED);
  suspended.resume();
  await suspended.until('the list again', () => suspended.modes.alternate && suspended.text.includes('/pod-00/'));
  suspended.signal(15);
  t.same(await suspended.ended, { code: 0, echo: true, canonical: true });
  t.same(suspended.modes, RESTORED);

  await shown(broken);
  broken.signal(12);
  t.match(await broken.ended, { code: 1, echo: true, canonical: true });
  t.same(broken.modes, RESTORED);
  t.match(broken.text, /Error: crashed/, 'the error stands on the normal screen');
});

test('where no screen can be shown, a sample is printed, and without an agent an error', options, async (t) => {
  const served = await servedNode(t);
  const dumb = topOn(t, served.socket, [], { TERM: 'dumb' });
  const nobody = topOn(t, `${served.socket}.none`);
  t.match(await dumb.ended, { code: 0 });
  t.match(dumb.text, /pod-59/, 'it is printed whole');
  t.match(await nobody.ended, { code: 1, echo: true });
  t.match(nobody.text.replaceAll('\n', ''), /no agent answers at .*none: is it running\?/);
});
