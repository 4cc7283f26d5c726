import type { Priority } from '../../src/gpu/priority.js';
import { nextTurn, restAfter, type TurnGpu, type TurnMember } from '../../src/gpu/turns.js';

/** A program that takes turns on a simulated GPU. */
export interface Program {
  readonly id: string;
  readonly priority: Priority;
  readonly cores: number;
  readonly memoryBytes: number;
  /** It works and pauses so long, again and again; a pause passes while it is suspended too. Infinity: always. */
  readonly workMs: number;
  readonly pauseMs: number;
  /** Of each `everyMs` that it runs, it cannot be suspended for the first `forMs`; absent: it always can. */
  readonly busy?: { readonly everyMs: number; readonly forMs: number };
}

export interface ProgramResult {
  readonly id: string;
  readonly workedMs: number;
  /** The longest time that it waited for a turn. */
  readonly longestWaitMs: number;
  /** How often it was suspended, and its shortest time from a resume to that. */
  readonly turns: number;
  readonly shortestTurnMs: number;
}

export interface TurnsResult {
  readonly programs: readonly ProgramResult[];
  readonly transferMs: number;
  readonly elapsedMs: number;
  /** What was wrong: too much on the GPU, or a program suspended that could not be. Empty: nothing. */
  readonly faults: readonly string[];
}

interface Running {
  readonly program: Program;
  step: TurnMember['step'];
  sinceMs: number;
  wantsSinceMs: number | null;
  lastWorkMs: number;
  works: boolean;
  leftMs: number;
  isNew: boolean;
  workedMs: number;
  longestWaitMs: number;
  turns: number;
  shortestTurnMs: number;
}

interface Move {
  readonly of: Running;
  readonly to: 'suspended' | 'running';
  readonly ms: number;
}

/** Runs programs by the turn policy, in computed time. All begin suspended and want to work. */
export function simulateTurns(
  gpu: Pick<TurnGpu, 'cores' | 'memoryBytes'>,
  programs: readonly Program[],
  { bytesPerMs, elapsedMs }: { readonly bytesPerMs: number; readonly elapsedMs: number },
): TurnsResult {
  const all = programs.map((program): Running => ({
    program,
    step: 'suspended',
    sinceMs: 0,
    wantsSinceMs: 0,
    lastWorkMs: 0,
    works: true,
    leftMs: program.workMs,
    isNew: true,
    workedMs: 0,
    longestWaitMs: 0,
    turns: 0,
    shortestTurnMs: Infinity,
  }));
  const faults: string[] = [];
  const moves: Move[] = [];
  let [nowMs, moveEndsMs, transferMs, restsUntilMs] = [0, Infinity, 0, 0];
  const transferOf = ({ program: { memoryBytes } }: Running): number => Math.ceil(memoryBytes / bytesPerMs);

  const mayEnd = ({ program: { busy }, step, sinceMs }: Running): boolean =>
    busy === undefined || step !== 'running' || (nowMs - sinceMs) % busy.everyMs >= busy.forMs;
  const staysSinceMs = (one: Running): number | null => {
    const { busy = null } = one.program;
    return busy === null || mayEnd(one) ? null : nowMs - ((nowMs - one.sinceMs) % busy.everyMs);
  };
  const member = (one: Running): TurnMember => ({
    ...{ id: one.program.id, priority: one.program.priority, cores: one.program.cores },
    ...{ memoryBytes: one.program.memoryBytes, step: one.step, sinceMs: one.sinceMs },
    transferMs: transferOf(one),
    wantsSinceMs: one.step === 'suspended' ? one.wantsSinceMs : null,
    workedMs: one.lastWorkMs,
    staysSinceMs: staysSinceMs(one),
  });
  const begin = (): void => {
    // It began to capture while another one moved: as in the agent, nobody moves then.
    if (moves[0]?.to === 'suspended' && !mayEnd(moves[0].of)) moves.length = 0;
    const [move] = moves;
    moveEndsMs = move === undefined ? Infinity : nowMs + move.ms;
    if (move === undefined) return;
    if (move.to === 'suspended') {
      move.of.turns += 1;
      move.of.shortestTurnMs = Math.min(move.of.shortestTurnMs, nowMs - move.of.sinceMs);
    }
    move.of.step = 'moving';
  };
  const end = (): void => {
    const move = moves.shift();
    if (move === undefined) return;
    const { of, to } = move;
    transferMs += move.ms;
    of.step = to;
    of.sinceMs = nowMs;
    if (to === 'running') {
      of.longestWaitMs = Math.max(of.longestWaitMs, nowMs - (of.wantsSinceMs ?? nowMs));
      of.wantsSinceMs = null;
      of.isNew = false;
    } else if (of.works) of.wantsSinceMs = nowMs;
    begin();
  };

  while (nowMs < elapsedMs) {
    let againMs: number | null = null;
    if (moves.length === 0) {
      const turn = nextTurn({ ...gpu, restsUntilMs }, all.map(member), nowMs);
      againMs = turn.againMs;
      const byId = (id: string): Running => all.find(({ program }) => program.id === id) as Running;
      for (const id of turn.suspend)
        if (!mayEnd(byId(id))) faults.push(`${id} is to give way at ${nowMs} ms, while it cannot`);
      for (const id of turn.suspend) moves.push({ of: byId(id), to: 'suspended', ms: transferOf(byId(id)) });
      if (turn.resume !== null) {
        const of = byId(turn.resume);
        moves.push({ of, to: 'running', ms: of.isNew ? 0 : transferOf(of) });
      }
      const movesMs = moves.reduce((sum, { ms }) => sum + ms, 0);
      restsUntilMs = restAfter(restsUntilMs, nowMs, movesMs);
      begin();
    }
    const here = all.filter(({ step }) => step !== 'suspended').map(({ program }) => program);
    const isOver = (amount: 'cores' | 'memoryBytes'): boolean =>
      here.reduce((sum, program) => sum + program[amount], 0) > gpu[amount];
    if (isOver('cores') || isOver('memoryBytes')) faults.push(`more is on the GPU at ${nowMs} ms than it has`);
    const nextMs = Math.min(
      elapsedMs,
      moveEndsMs,
      Math.max(nowMs + 1, againMs ?? Infinity),
      ...all.map((one) => (one.works && one.step !== 'running' ? Infinity : nowMs + Math.max(1, one.leftMs))),
      ...all.map(({ program: { busy }, step, sinceMs }) =>
        busy === undefined || step !== 'running' ? Infinity : nowMs + untilFree(busy, nowMs - sinceMs),
      ),
    );
    const passedMs = nextMs - nowMs;
    nowMs = nextMs;
    for (const one of all) {
      if (one.works && one.step !== 'running') continue;
      one.leftMs -= passedMs;
      if (one.works) {
        one.workedMs += passedMs;
        one.lastWorkMs = nowMs;
      }
      if (one.leftMs > 0) continue;
      const { workMs, pauseMs } = one.program;
      one.works = !one.works;
      one.leftMs = one.works ? workMs : pauseMs;
      if (one.works && one.step === 'suspended') one.wantsSinceMs ??= nowMs;
    }
    if (nowMs >= moveEndsMs) end();
  }
  return {
    programs: all.map((one) => ({
      ...{ id: one.program.id, workedMs: one.workedMs, turns: one.turns, shortestTurnMs: one.shortestTurnMs },
      longestWaitMs: Math.max(one.longestWaitMs, one.wantsSinceMs === null ? 0 : nowMs - one.wantsSinceMs),
    })),
    ...{ transferMs, elapsedMs: nowMs, faults },
  };
}

function untilFree({ everyMs, forMs }: NonNullable<Program['busy']>, ranMs: number): number {
  const at = ranMs % everyMs;
  return at < forMs ? forMs - at : everyMs - at;
}
