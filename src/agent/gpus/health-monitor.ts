import { afterEvent, afterTime, freshHealth, xidReason, type GpuHealth, type HealthEvent } from './health.js';
import type { HealthPolicy } from './health-policy.js';
import type { Clock } from '../../host/clock.js';
import type { Driver, DriverEvent, Inventory } from './driver.js';

/** What the agent has to act on. */
export type HealthNews =
  /** A GPU's health changed; `after.reason` is for operators and for the owners of pods on it. */
  | { readonly kind: 'health'; readonly uuid: string; readonly before: GpuHealth; readonly after: GpuHealth }
  /** GPUs were added, removed, or changed their description. */
  | { readonly kind: 'inventory'; readonly inventory: Inventory }
  /** The driver as a whole: null when it answers again. While it does not, no GPU is usable. */
  | { readonly kind: 'driver'; readonly outage: string | null }
  /** An error that says nothing against the GPU: worth a line in the log, and in a metric. */
  | { readonly kind: 'remark'; readonly uuid: string; readonly text: string };

export interface HealthMonitorOptions {
  readonly driver: Driver;
  /** As the driver gave it; health is kept for its GPUs. */
  readonly inventory: Inventory;
  readonly policy: HealthPolicy;
  /** What an earlier run of the agent knew of GPUs, by UUID. */
  readonly restored?: ReadonlyMap<string, GpuHealth>;
  readonly clock: Clock;
}

/**
 * Turns what the driver reports into the health of each GPU, and tells at once what changed. Probations end by the
 * clock. Listeners are called in turn and must not throw.
 */
export class HealthMonitor {
  readonly #driver: Driver;
  readonly #policy: HealthPolicy;
  readonly #clock: Clock;
  readonly #listeners = new Set<(news: HealthNews) => void>();
  readonly #health = new Map<string, GpuHealth>();
  #inventory: Inventory;
  #outage: string | null = null;
  #leave: (() => void) | null = null;
  #cancel: () => void = () => undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(options: HealthMonitorOptions) {
    this.#driver = options.driver;
    this.#policy = options.policy;
    this.#clock = options.clock;
    this.#inventory = options.inventory;
    for (const [uuid, health] of options.restored ?? []) this.#health.set(uuid, health);
    this.#keep(options.inventory);
  }

  get inventory(): Inventory {
    return this.#inventory;
  }

  /** Why the driver does not answer; null while it does. */
  get outage(): string | null {
    return this.#outage;
  }

  start(): void {
    this.#leave ??= this.#driver.subscribe((event) => this.#hear(event));
  }

  /** Hears nothing more; resolves when a reading of the inventory that is under way is done. */
  async stop(): Promise<void> {
    this.#leave?.();
    this.#leave = null;
    this.#cancel();
    this.#listeners.clear();
    await this.#reading;
  }

  subscribe(listener: (news: HealthNews) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Health of a GPU of the inventory. */
  health(uuid: string): GpuHealth {
    const health = this.#health.get(uuid);
    if (health === undefined) throw new RangeError(`no GPU ${uuid}`);
    return health;
  }

  /** GPUs that nothing new may be placed on, and why. */
  unusable(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [uuid, health] of this.#health) {
      const reason = this.#outage === null ? health.reason : `the driver does not answer: ${this.#outage}`;
      if (reason !== null) found.set(uuid, reason);
    }
    return found;
  }

  /** An operator vouches for a GPU: nothing is held against it any more. False for a GPU that is not there. */
  clear(uuid: string): boolean {
    const before = this.#health.get(uuid);
    if (before === undefined) return false;
    const isClean = before.status === 'healthy' && before.strikesMs.length === 0;
    if (!isClean) this.#change(uuid, before, freshHealth(this.#clock.now()));
    return true;
  }

  #hear(event: DriverEvent): void {
    switch (event.kind) {
      case 'xid':
        this.#hearXid(event.uuid, event.xid);
        break;
      case 'ecc':
      case 'lost':
      case 'found':
        this.#apply(event.uuid, event);
        break;
      case 'changed':
        this.#readInventory();
        break;
      case 'unreachable':
        this.#outage = event.reason;
        this.#tell({ kind: 'driver', outage: event.reason });
        break;
      case 'reachable':
        this.#outage = null;
        this.#tell({ kind: 'driver', outage: null });
        for (const uuid of this.#health.keys())
          this.#apply(uuid, { kind: 'restarted', reason: 'the driver was restarted' });
        this.#readInventory();
        break;
    }
  }

  #hearXid(uuid: string, xid: number): void {
    const known = this.#policy.xids.get(xid)?.class ?? this.#policy.otherwise;
    if (known === 'ignored') this.#tell({ kind: 'remark', uuid, text: xidReason(xid, this.#policy) });
    else this.#apply(uuid, { kind: 'xid', xid });
  }

  #apply(uuid: string, event: HealthEvent): void {
    const before = this.#health.get(uuid);
    // A GPU that is left out of sharing has no health to keep.
    if (before === undefined) return;
    this.#change(uuid, before, afterEvent(before, event, this.#clock.now(), this.#policy));
  }

  #change(uuid: string, before: GpuHealth, after: GpuHealth): void {
    if (after === before) return;
    this.#health.set(uuid, after);
    this.#wake();
    this.#tell({ kind: 'health', uuid, before, after });
  }

  /** Arms the clock for the probation that ends first. */
  #wake(): void {
    this.#cancel();
    const ends = [...this.#health.values()].flatMap((health) => (health.untilMs === null ? [] : [health.untilMs]));
    if (ends.length === 0) return;
    this.#cancel = this.#clock.after(Math.max(0, Math.min(...ends) - this.#clock.now()), () => {
      const now = this.#clock.now();
      for (const [uuid, health] of [...this.#health]) this.#change(uuid, health, afterTime(health, now));
      this.#wake();
    });
  }

  #readInventory(): void {
    this.#reading = this.#reading.then(async () => {
      try {
        const inventory = await this.#driver.inventory();
        if (this.#leave === null) return;
        this.#inventory = inventory;
        this.#keep(inventory);
        this.#tell({ kind: 'inventory', inventory });
      } catch {
        // The driver went away meanwhile: it says so itself, and when it is back the inventory is read again.
      }
    });
  }

  /** Keeps the health of GPUs that are still there; a GPU that is new, or was taken out and put back, starts fresh. */
  #keep(inventory: Inventory): void {
    const present = new Set(inventory.gpus.map((gpu) => gpu.uuid));
    for (const uuid of [...this.#health.keys()]) if (!present.has(uuid)) this.#health.delete(uuid);
    for (const uuid of present) if (!this.#health.has(uuid)) this.#health.set(uuid, freshHealth(this.#clock.now()));
    this.#wake();
  }

  #tell(news: HealthNews): void {
    for (const listener of [...this.#listeners]) listener(news);
  }
}
