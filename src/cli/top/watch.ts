import { setTimeout as delay } from 'node:timers/promises';
import { stopSignal } from '../stop-signal.js';
import { frameOf } from './frame.js';
import { paint } from './paint.js';
import type { SampleSource } from './sample.js';
import { react, shownSlices, START, withOutage, withProcesses, withSample, withTree, type TopState } from './state.js';
import { Terminal } from './terminal.js';

export interface WatchOptions {
  readonly delayMs: number;
  readonly mouse: boolean;
  readonly color: boolean;
}

/** Slices of the tree whose processes are read; of the others, it shows pids. */
const MOST_IN_TREE = 64;

/**
 * Shows samples of the source on the terminal until the user quits or a signal arrives. Rejects without touching the
 * terminal if the source gives no first sample.
 */
export async function watch(source: SampleSource, { delayMs, mouse, color }: WatchOptions): Promise<void> {
  let state: TopState = await firstSample(source);
  const terminal = new Terminal(process.stdin, process.stdout, mouse);
  const end = new AbortController();
  let frame = frameOf(state, terminal.size);
  const draw = (): void => {
    frame = frameOf(state, terminal.size);
    terminal.draw(frame.lines.map((line) => paint(line, color)));
  };
  const readProcesses = async (): Promise<void> => {
    if (state.open === null) {
      if (state.showsTree) await readTree();
      return;
    }
    const { row } = state.open;
    const processes = await source.processes(row);
    state = withProcesses(state, row.key, processes);
  };
  const readTree = async (): Promise<void> => {
    const rows = shownSlices(state).slice(0, MOST_IN_TREE);
    const read = await Promise.all(rows.map(async (row) => [row.key, await source.processes(row)] as const));
    state = withTree(state, new Map(read));
  };
  // If reading processes after a key fails, the program ends with that error.
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  void stopSignal().then(() => end.abort());
  terminal.open({
    input: (event) => {
      const { state: next, effect } = react(state, event, frame.targets);
      state = next;
      switch (effect) {
        case 'quit':
          return end.abort();
        case 'suspend':
          return terminal.suspend();
        case 'redraw':
          terminal.clear();
          break;
        case 'read-processes':
          readProcesses().then(draw, fail);
          break;
        case 'none':
          break;
      }
      draw();
    },
    resize: () => {
      terminal.clear();
      draw();
    },
    closed: () => end.abort(),
  });
  const sampling = async (): Promise<void> => {
    while (!end.signal.aborted) {
      draw();
      await delay(delayMs, undefined, { signal: end.signal }).catch(() => undefined);
      if (end.signal.aborted) return;
      const answer = await source.sample();
      if (end.signal.aborted) return;
      state = answer.ok ? withSample(state, answer.sample) : withOutage(state, answer.reason);
      if (answer.ok) await readProcesses();
    }
  };
  try {
    await Promise.race([sampling(), aborted(end.signal), failed]);
  } finally {
    terminal.close();
  }
}

async function firstSample(source: SampleSource): Promise<TopState> {
  const answer = await source.sample();
  if (!answer.ok) throw new Error(answer.reason);
  return withSample(START, answer.sample);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
