import { nextTurn, restAfter, type TurnGpu, type TurnMember } from '../../../gpu/turns.js';
import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';

/** The containers of one GPU, as far as turns are concerned. */
export interface CrowdedGpu extends Omit<TurnGpu, 'restsUntilMs'> {
  readonly uuid: string;
  readonly members: readonly TurnMember[];
}

export interface TurnKeeperOptions {
  /** The GPUs on which a container waits, as of now. */
  readonly gpus: () => readonly CrowdedGpu[];
  /** Suspends a container; a reason if it still runs. */
  readonly suspend: (id: string) => Promise<string | null>;
  /** Resumes a container; a reason if it is still suspended. */
  readonly resume: (id: string) => Promise<string | null>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A container whose GPU has room waits at most so long. */
const LOOK_MS = 100;
/** A container that could not be moved is left in peace for so long. */
const AGAIN_MS = 10_000;
/** One that nobody wanted to move for so long is forgotten. */
const FORGOTTEN_MS = 60_000;

/** Carries out the turns of the containers of each crowded GPU, one move after another. */
export class TurnKeeper {
  readonly #options: TurnKeeperOptions;
  /** GPUs on which a container moves. */
  readonly #moving = new Set<string>();
  /** By GPU, until when it rests. */
  readonly #restsUntilMs = new Map<string, number>();
  /** Containers that could not be moved: since when, and when they are tried again. */
  readonly #stuck = new Map<string, { readonly sinceMs: number; readonly againMs: number }>();
  #cancel: (() => void) | null = null;
  #stopped = false;

  constructor(options: TurnKeeperOptions) {
    this.#options = options;
  }

  /** Does nothing if it runs. */
  start(): void {
    this.#cancel ??= this.#options.clock.every(LOOK_MS, () => this.look());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** Something changed: a call waits, or a container began or ended. */
  look(): void {
    if (this.#stopped) return;
    for (const gpu of this.#options.gpus()) if (!this.#moving.has(gpu.uuid)) this.#decide(gpu);
  }

  #decide(gpu: CrowdedGpu): void {
    const { clock, log } = this.#options;
    const nowMs = clock.now();
    for (const [id, { againMs }] of this.#stuck) if (againMs + FORGOTTEN_MS <= nowMs) this.#stuck.delete(id);
    const members = gpu.members.map((member) => {
      const stuck = this.#stuck.get(member.id);
      return stuck === undefined || stuck.againMs <= nowMs ? member : inPeace(member, stuck.sinceMs);
    });
    const restsUntilMs = this.#restsUntilMs.get(gpu.uuid) ?? 0;
    const { suspend, resume } = nextTurn({ ...gpu, restsUntilMs }, members, nowMs);
    if (suspend.length === 0 && resume === null) return;
    this.#moving.add(gpu.uuid);
    void this.#move(suspend, resume)
      .catch((error: unknown) =>
        log.error({ err: error, gpu: gpu.uuid }, 'the containers of a GPU could not take turns'),
      )
      .finally(() => {
        const movedMs = clock.now() - nowMs;
        this.#restsUntilMs.set(gpu.uuid, restAfter(restsUntilMs, nowMs, movedMs));
        this.#moving.delete(gpu.uuid);
        this.look();
      });
  }

  /** A container is resumed only if all that give way for it have left. */
  async #move(suspend: readonly string[], resume: string | null): Promise<void> {
    for (const id of suspend) {
      const reason = await this.#options.suspend(id);
      if (reason === null) {
        this.#stuck.delete(id);
        continue;
      }
      return this.#leave(id, reason, 'a container does not give its GPU to the next');
    }
    if (resume === null) return;
    const reason = await this.#options.resume(resume);
    if (reason === null) this.#stuck.delete(resume);
    else this.#leave(resume, reason, 'a container waits for its GPU');
  }

  #leave(id: string, reason: string, message: string): void {
    const nowMs = this.#options.clock.now();
    this.#stuck.set(id, { sinceMs: this.#stuck.get(id)?.sinceMs ?? nowMs, againMs: nowMs + AGAIN_MS });
    this.#options.log.info({ allocation: id, reason }, message);
  }
}

/** Neither suspended nor resumed. */
function inPeace(member: TurnMember, sinceMs: number): TurnMember {
  return { ...member, staysSinceMs: sinceMs, wantsSinceMs: null };
}
