import { afterEvent, afterTime, freshHealth, xidReason, type GpuHealth, type HealthEvent } from './health.js';
import type { HealthPolicy } from './health-policy.js';
import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import type { Driver, DriverEvent, Inventory } from './driver.js';

/** Events that the agent acts on. */
export type HealthNews =
  /** A GPU's health changed; operators and owners of pods on the GPU read `after.reason`. */
  | { readonly kind: 'health'; readonly uuid: string; readonly before: GpuHealth; readonly after: GpuHealth }
  /** GPUs were added, removed, or changed their description. */
  | { readonly kind: 'inventory'; readonly inventory: Inventory }
  /** The state of the driver as a whole: null when it answers again. Until then no GPU is usable. */
  | { readonly kind: 'driver'; readonly outage: string | null }
  /** An error that does not affect the GPU's health: it is only logged and counted. */
  | { readonly kind: 'remark'; readonly uuid: string; readonly text: string };

export interface HealthMonitorOptions {
  readonly driver: Driver;
  /** The driver's inventory; health is kept for its GPUs. */
  readonly inventory: Inventory;
  readonly policy: HealthPolicy;
  /** Health of GPUs from an earlier run of the agent, by UUID. */
  readonly restored?: ReadonlyMap<string, GpuHealth>;
  readonly clock: Clock;
}

/**
 * Derives the health of each GPU from the driver's events, and reports changes at once. The clock ends probations.
 * Listeners are called in turn and must not throw.
 */
export class HealthMonitor {
  readonly #driver: Driver;
  readonly #policy: HealthPolicy;
  readonly #clock: Clock;
  readonly #listeners = new Listeners<HealthNews>();
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

  /** Why the driver does not answer; null if it does. */
  get outage(): string | null {
    return this.#outage;
  }

  start(): void {
    this.#leave ??= this.#driver.subscribe((event) => this.#hear(event));
  }

  /** Unsubscribes from the driver; resolves when a running read of the inventory has ended. */
  async stop(): Promise<void> {
    this.#leave?.();
    this.#leave = null;
    this.#cancel();
    this.#listeners.clear();
    await this.#reading;
  }

  subscribe(listener: (news: HealthNews) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Health of a GPU of the inventory. */
  health(uuid: string): GpuHealth {
    const health = this.#health.get(uuid);
    if (health === undefined) throw new RangeError(`no GPU ${uuid}`);
    return health;
  }

  /** GPUs that new containers cannot use, with the reason. */
  unusable(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [uuid, health] of this.#health) {
      const reason = this.#outage === null ? health.reason : `the driver does not answer: ${this.#outage}`;
      if (reason !== null) found.set(uuid, reason);
    }
    return found;
  }

  /** Clears a GPU's errors on an operator's request. False for an unknown GPU. */
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
    // A GPU that is excluded from sharing has no health.
    if (before === undefined) return;
    this.#change(uuid, before, afterEvent(before, event, this.#clock.now(), this.#policy));
  }

  #change(uuid: string, before: GpuHealth, after: GpuHealth): void {
    if (after === before) return;
    this.#health.set(uuid, after);
    this.#wake();
    this.#tell({ kind: 'health', uuid, before, after });
  }

  /** Sets the timer for the probation that ends first. */
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
        // The driver failed meanwhile: it reports this itself, and the inventory is read again when it is back.
      }
    });
  }

  /**
   * Keeps the health of GPUs that remain, also of those that the agent divides; a GPU that is new or was reinserted
   * starts healthy.
   */
  #keep(inventory: Inventory): void {
    const divided = (inventory.partitionable ?? []).map(({ gpu }) => gpu);
    const present = new Set([...inventory.gpus, ...divided].map((gpu) => gpu.uuid));
    for (const uuid of [...this.#health.keys()]) if (!present.has(uuid)) this.#health.delete(uuid);
    for (const uuid of present) if (!this.#health.has(uuid)) this.#health.set(uuid, freshHealth(this.#clock.now()));
    this.#wake();
  }

  #tell(news: HealthNews): void {
    this.#listeners.emit(news);
  }
}
