import { DriverError, type DriverEvent } from '../driver.js';
import { DRIVER_TARGET } from './call-gate.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import { EVENT_DOUBLE_BIT_ECC, EVENT_XID, nextEvent } from './event-set.js';
import { memory, type MemoryInfo } from './identity.js';
import { uncorrectedErrors } from './load.js';
import type { Session } from './session.js';

/** Highest number of events per sample: a GPU with errors repeats them, and other GPUs need their turn. */
const MAX_EVENTS = 64;

/**
 * Detects events of the GPUs of one session; each sample returns the events since the last one. A GPU that reports its
 * errors as events is seldom queried, because every call takes a thread of Node's pool, for each GPU and for as long as
 * the agent runs.
 */
export class Watch {
  readonly #session: Session;
  readonly #lost = new Set<string>();
  readonly #errors = new Map<string, number>();
  /** The event set reports an error without naming the GPU. */
  #hasUnnamedError = false;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Errors that GPUs have reported. */
  async reported(): Promise<readonly DriverEvent[]> {
    const { nvml, events } = this.#session;
    if (events === null) return [];
    const news: DriverEvent[] = [];
    for (let count = 0; count < MAX_EVENTS; count++) {
      const event = await nvml.ask(DRIVER_TARGET, nextEvent(events)).catch(troubleOfOneGpu);
      // A lost GPU makes the whole set fail; asking the GPUs shows which one it is.
      if (event === 'trouble') this.#hasUnnamedError = true;
      if (event === null || event === 'none' || event === 'trouble') break;
      const gpu = [...this.#session.gpus.values()].find((known) => known.handle === event.gpu);
      if (gpu === undefined) continue;
      const hit = this.#hitBy(gpu.details.uuid, event.gpuInstance);
      if ((event.type & EVENT_XID) !== 0n)
        news.push(...hit.map((uuid) => ({ kind: 'xid', uuid, xid: event.data }) as const));
      if ((event.type & EVENT_DOUBLE_BIT_ECC) !== 0n) news.push(...hit.map((uuid) => ({ kind: 'ecc', uuid }) as const));
    }
    return news;
  }

  /**
   * UUIDs that an event affects: an event of a GPU affects all its MIG instances, an event of one instance only that
   * one.
   */
  #hitBy(uuid: string, gpuInstance: number | null = null): readonly string[] {
    const instances = [...this.#session.gpus.values()].filter(({ details }) => details.instance?.parentUuid === uuid);
    const one = instances.find(({ details }) => details.instance?.gpuInstance === gpuInstance);
    return one !== undefined ? [one.details.uuid] : [uuid, ...instances.map(({ details }) => details.uuid)];
  }

  /**
   * Queries whether GPUs answer and have memory errors: all of them, or only those that do not report errors. Rejects
   * if the whole driver does not answer.
   */
  async visited(everyone: boolean): Promise<readonly DriverEvent[]> {
    const { gpus, reporting } = this.#session;
    const all = everyone || this.#hasUnnamedError;
    this.#hasUnnamedError = false;
    const visits = [...gpus.values()]
      .filter(({ details }) => details.instance === undefined)
      .filter(({ details: { uuid } }) => all || this.#lost.has(uuid) || !reporting.has(uuid))
      .map((gpu) => this.#visit(gpu));
    return (await Promise.all(visits)).flat();
  }

  /**
   * The events that follow from a failed call to a GPU; none if the loss is known already, or the error is not a loss.
   */
  missed(uuid: string, error: unknown): readonly DriverEvent[] {
    if (!(error instanceof DriverError) || (error.code !== 'gpu-lost' && error.code !== 'timeout')) return [];
    return this.#lose(this.#session.gpus.get(uuid)?.details.instance?.parentUuid ?? uuid, error.message);
  }

  async #visit(gpu: NvmlGpu): Promise<readonly DriverEvent[]> {
    const { uuid } = gpu.details;
    try {
      const [present, uncorrected] = this.#session.nvml.askAll<[MemoryInfo, number]>(gpu.target, [
        memory(gpu.handle),
        uncorrectedErrors(gpu.handle),
      ]);
      await present;
      const errors = await optional(uncorrected);
      return [...this.#find(uuid), ...this.#count(uuid, errors)];
    } catch (error) {
      if (error instanceof DriverError && error.code === 'unreachable') throw error;
      return this.#lose(uuid, (error as Error).message);
    }
  }

  #lose(uuid: string, reason: string): readonly DriverEvent[] {
    if (this.#lost.has(uuid)) return [];
    this.#lost.add(uuid);
    return this.#hitBy(uuid).map((hit) => ({ kind: 'lost', uuid: hit, reason }));
  }

  #find(uuid: string): readonly DriverEvent[] {
    return this.#lost.delete(uuid) ? this.#hitBy(uuid).map((hit) => ({ kind: 'found', uuid: hit })) : [];
  }

  /** Errors before the first sample are ignored: the driver keeps using such a GPU. */
  #count(uuid: string, errors: number | null): readonly DriverEvent[] {
    if (errors === null) return [];
    const before = this.#errors.get(uuid) ?? errors;
    this.#errors.set(uuid, errors);
    return errors > before ? this.#hitBy(uuid).map((hit) => ({ kind: 'ecc', uuid: hit })) : [];
  }
}

function troubleOfOneGpu(error: unknown): 'trouble' {
  if (error instanceof DriverError && (error.code === 'gpu-lost' || error.code === 'failed')) return 'trouble';
  throw error;
}
