/**
 * Turns: which of the containers of one GPU run, where more may be on it than it has room for. A container that runs
 * keeps the GPU until another one waits for room; then it keeps it for the rest of its turn. Pure.
 *
 * A turn lasts at least 20 times its transfer. Where several run and have turns of their own, the GPU also rests after
 * each move, so that transfers take at most a tenth of the time (`restAfter`).
 */
import { PRIORITIES, type Priority } from './priority.js';

/** The shortest turn of a container that works. */
export const SHORTEST_TURN_MS = 30_000;
/** A turn lasts at least so many times the transfer. */
export const TRANSFERS_IN_TURN = 20;
/** A container without work for this long does not need the shortest turn. */
export const IDLE_MS = 5_000;
/** Room is kept for who waits, until a container that cannot be suspended has not been able to for so long. */
export const PATIENCE_MS = 60_000;
/** Who waited this long comes before every priority. */
export const LONGEST_WAIT_MS = 600_000;

/** A container of the GPU that runs, or is suspended. One in a step between the two is in `moving`. */
export interface TurnMember {
  readonly id: string;
  readonly priority: Priority;
  /** What it has of the GPU while it runs. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly step: 'running' | 'moving' | 'suspended';
  /** Since when. */
  readonly sinceMs: number;
  /** One way, in milliseconds. */
  readonly transferMs: number;
  /** Since when a call of it waits; null: none does. */
  readonly wantsSinceMs: number | null;
  /** When it last worked. */
  readonly workedMs: number;
  /**
   * Since when it cannot be suspended: it must run (since 0), has an obstacle, captures or communicates; null: it
   * can be.
   */
  readonly staysSinceMs: number | null;
}

export interface TurnGpu {
  readonly cores: number;
  readonly memoryBytes: number;
  /** No container gives way before this time; see `restAfter`. */
  readonly restsUntilMs: number;
}

/** Of ten parts of the time, transfers take one. */
const REST = 10;

/** Until when a GPU rests that rested until `restsUntilMs`, and from `beganMs` on moved containers for `transferMs`. */
export function restAfter(restsUntilMs: number, beganMs: number, transferMs: number): number {
  return Math.max(restsUntilMs, beganMs) + REST * transferMs;
}

export interface Turn {
  /** These are suspended first. */
  readonly suspend: readonly string[];
  /** Resumed then; null: nobody. */
  readonly resume: string | null;
  /** When to ask again, if nothing happens before; null: not before something happens. */
  readonly againMs: number | null;
}

const NOBODY: Turn = { suspend: [], resume: null, againMs: null };

/** The next step for the containers of a GPU. While one of them moves, nothing is decided. */
export function nextTurn(gpu: TurnGpu, members: readonly TurnMember[], nowMs: number): Turn {
  if (members.some(({ step }) => step === 'moving')) return NOBODY;
  const [first, ...later] = waitingInOrder(members, nowMs);
  if (first === undefined) return NOBODY;
  const running = members.filter(({ step }) => step === 'running');
  if (fits(gpu, [...running, first])) return { ...NOBODY, resume: first.id };
  const leaving = leavingFor(gpu, running, first, nowMs);
  if (leaving === null) return besideOf(gpu, running, first, later, nowMs);
  const againMs = Math.max(gpu.restsUntilMs, ...leaving.map(endsMs));
  if (againMs <= nowMs) return { suspend: leaving.map(({ id }) => id), resume: first.id, againMs: null };
  // Room that the first does not need, now or when its turn begins, is for those after it.
  const then = [...running.filter((member) => !leaving.includes(member)), first];
  const beside = later.find((member) => fits(gpu, [...running, member]) && fits(gpu, [...then, member]));
  return { suspend: [], resume: beside?.id ?? null, againMs };
}

/**
 * While nobody can make room for the first: its room is kept as long as it may get it soon. Else all room is for those
 * after it.
 */
function besideOf(
  gpu: TurnGpu,
  running: readonly TurnMember[],
  first: TurnMember,
  later: readonly TurnMember[],
  nowMs: number,
): Turn {
  const patienceEnds = ({ staysSinceMs }: TurnMember): number => (staysSinceMs ?? Infinity) + PATIENCE_MS;
  const lasting = running.filter((member) => patienceEnds(member) <= nowMs);
  const isSoon = fits(gpu, [...lasting, first]);
  const then = isSoon ? [...lasting, first] : [];
  const beside = later.find((member) => fits(gpu, [...running, member]) && fits(gpu, [...then, member]));
  const againMs = Math.min(...running.map(patienceEnds).filter((atMs) => atMs > nowMs));
  return { suspend: [], resume: beside?.id ?? null, againMs: isSoon && Number.isFinite(againMs) ? againMs : null };
}

/** The suspended containers with a waiting call, in the order of their turns. */
export function waitingInOrder(members: readonly TurnMember[], nowMs: number): readonly TurnMember[] {
  const waitingMs = ({ wantsSinceMs }: TurnMember): number => nowMs - (wantsSinceMs ?? nowMs);
  const rank = (member: TurnMember): number =>
    waitingMs(member) >= LONGEST_WAIT_MS ? -1 : PRIORITIES.indexOf(member.priority);
  return members
    .filter(({ step, wantsSinceMs }) => step === 'suspended' && wantsSinceMs !== null)
    .sort((a, b) => rank(a) - rank(b) || waitingMs(b) - waitingMs(a) || (a.id < b.id ? -1 : 1));
}

/**
 * The running containers that make room for `first`, as few as possible: the least important, then those whose turn
 * ends first. Null if it has no room even without all that may end.
 */
function leavingFor(
  gpu: TurnGpu,
  running: readonly TurnMember[],
  first: TurnMember,
  nowMs: number,
): readonly TurnMember[] | null {
  const order = running
    .filter(({ staysSinceMs }) => staysSinceMs === null)
    .sort(
      (a, b) =>
        Math.max(nowMs, endsMs(a)) - Math.max(nowMs, endsMs(b)) ||
        PRIORITIES.indexOf(b.priority) - PRIORITIES.indexOf(a.priority) ||
        a.sinceMs - b.sinceMs ||
        (a.id < b.id ? -1 : 1),
    );
  const leaving: TurnMember[] = [];
  const hasRoom = (without: readonly TurnMember[]): boolean =>
    fits(gpu, [...running.filter((member) => !without.includes(member)), first]);
  while (!hasRoom(leaving)) {
    const next = order[leaving.length];
    if (next === undefined) return null;
    leaving.push(next);
  }
  return leaving.reduceRight((least: readonly TurnMember[], member) => {
    const fewer = least.filter((other) => other !== member);
    return hasRoom(fewer) ? fewer : least;
  }, leaving);
}

/** When the turn of a running container ends for another one; later, if it works until then. */
function endsMs({ sinceMs, workedMs, transferMs }: TurnMember): number {
  const asked = Math.min(sinceMs + SHORTEST_TURN_MS, Math.max(sinceMs, workedMs) + IDLE_MS);
  return Math.max(asked, sinceMs + TRANSFERS_IN_TURN * transferMs);
}

function fits({ cores, memoryBytes }: Pick<TurnGpu, 'cores' | 'memoryBytes'>, members: readonly TurnMember[]): boolean {
  const sum = (of: (member: TurnMember) => number): number => members.reduce((all, member) => all + of(member), 0);
  return sum((member) => member.cores) <= cores && sum((member) => member.memoryBytes) <= memoryBytes;
}
