import { MERGE_PATCH, type KubeApi } from './client.js';
import type { Clock } from '../host/clock.js';

export interface LeaderOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Distinguishes the candidates. */
  readonly identity: string;
  readonly log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  readonly clock: Clock;
  /** The time that is written into the Lease and passed to the next leader; default: `clock`. */
  readonly leaseTime?: () => number;
  /**
   * Starts the leader's work; called again after `lost`. Gets the time of the lease's last renewal before, null if
   * there was none.
   */
  readonly won: (renewedBefore: number | null) => Promise<void>;
  /** Ends the leader's work. */
  readonly lost: () => Promise<void>;
  readonly leaseMs?: number;
  readonly retryMs?: number;
  /** Whether the leader may hand over to a candidate that asks for the lease (`want`). By default it never does. */
  readonly mayHandOver?: () => boolean;
}

/** Annotation of the Lease: the candidate that asks the leader to hand over. */
const WANTED_BY_KEY = 'gpu-manager.tencent.com/wanted-by';

interface Lease {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
    readonly leaseTransitions?: number;
    readonly acquireTime?: string;
  };
}

/**
 * Leader election by a Lease. A candidate considers the holder dead when the Lease has not changed for too long by the
 * candidate's own clock, so clocks of nodes need not agree. A leader that could not renew in time stops before another
 * one may start.
 */
export class Leader {
  readonly #options: Required<LeaderOptions>;
  #leading = false;
  #renewedAt = 0;
  /** Time of the last renewal before this candidate took the lease, according to its holder. */
  #renewedBefore: number | null = null;
  /** The last seen version of the lease, and since when it is unchanged. */
  #seen = { version: '', at: 0 };
  #cancelRound: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: LeaderOptions) {
    this.#options = {
      leaseMs: 15_000,
      retryMs: 2_000,
      leaseTime: () => options.clock.now(),
      mayHandOver: () => false,
      ...options,
    };
  }

  get leading(): boolean {
    return this.#leading;
  }

  /** Time since this candidate sent the last renewal that succeeded. */
  get sinceRenewalMs(): number {
    return this.#options.clock.now() - this.#renewedAt;
  }

  start(): void {
    this.#running = this.#round();
  }

  /** Asks the leader to hand over as soon as it may. */
  async want(): Promise<void> {
    const { api, identity, name } = this.#options;
    const path = `${this.#path()}/${encodeURIComponent(name)}`;
    const body = { metadata: { annotations: { [WANTED_BY_KEY]: identity } } };
    await api.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
  }

  /** Releases the lease by default, so that the next leader need not wait. */
  async stop({ releases = true } = {}): Promise<void> {
    this.#stopped = true;
    this.#cancelRound();
    await this.#running;
    if (!this.#leading) return;
    await this.#end();
    const lease = releases ? await this.#read() : null;
    if (lease?.spec?.holderIdentity === this.#options.identity) await this.#write(lease, '');
  }

  async #round(): Promise<void> {
    const { clock, leaseMs, retryMs, log, won } = this.#options;
    try {
      const askedAt = clock.now();
      const held = await this.#hold();
      if (held) this.#renewedAt = askedAt;
      if (held && !this.#leading && !this.#stopped) {
        this.#leading = true;
        log.info({ identity: this.#options.identity }, 'started leading');
        await won(this.#renewedBefore);
      } else if (this.#leading && !held && clock.now() - this.#renewedAt > leaseMs * 0.6) await this.#end();
    } catch (error) {
      log.error({ err: error }, 'leader election failed; retrying');
      if (this.#leading) await this.#end();
    }
    if (!this.#stopped) {
      this.#cancelRound = clock.after(retryMs, () => {
        this.#running = this.#round();
      });
    }
  }

  async #end(): Promise<void> {
    this.#leading = false;
    this.#options.log.info({ identity: this.#options.identity }, 'stopped leading');
    await this.#options.lost();
  }

  /** True if this candidate holds the lease now. */
  async #hold(): Promise<boolean> {
    const { identity, leaseMs, clock } = this.#options;
    const lease = await this.#read();
    if (lease === undefined) return false;
    const holder = lease?.spec?.holderIdentity ?? '';
    const version = lease?.metadata.resourceVersion ?? '';
    const now = clock.now();
    if (version !== this.#seen.version) this.#seen = { version, at: now };
    if (
      lease !== null &&
      holder !== '' &&
      holder !== identity &&
      clock.now() - this.#seen.at < (lease.spec?.leaseDurationSeconds ?? leaseMs / 1000) * 1000
    )
      return false;
    const wantedBy = lease?.metadata.annotations?.[WANTED_BY_KEY] ?? identity;
    if (lease !== null && this.#leading && wantedBy !== identity && this.#options.mayHandOver()) {
      await this.#end();
      await this.#write(lease, '');
      return false;
    }
    // A lease that was just handed over is left to the candidate that asked for it.
    if (!this.#leading && holder === '' && wantedBy !== identity && this.#seen.at === now) return false;
    if (!this.#leading) {
      const renewed = Date.parse(lease?.spec?.renewTime ?? '');
      this.#renewedBefore = Number.isFinite(renewed) ? renewed : null;
    }
    return this.#write(lease, identity);
  }

  /** Null if there is none, undefined if the server did not answer. */
  async #read(): Promise<Lease | null | undefined> {
    const { api, name } = this.#options;
    const answer = await api.request({ method: 'GET', path: `${this.#path()}/${encodeURIComponent(name)}` });
    if (answer.ok) return answer.body as Lease;
    return answer.code === 'not-found' ? null : undefined;
  }

  async #write(lease: Lease | null, holderIdentity: string): Promise<boolean> {
    const { api, namespace, name, leaseMs, leaseTime, log } = this.#options;
    const renewTime = `${new Date(leaseTime()).toISOString().slice(0, -1)}000Z`;
    const isNew = lease?.spec?.holderIdentity !== holderIdentity;
    const { [WANTED_BY_KEY]: wantedBy, ...annotations } = lease?.metadata.annotations ?? {};
    const kept =
      wantedBy === undefined || wantedBy === holderIdentity
        ? annotations
        : { ...annotations, [WANTED_BY_KEY]: wantedBy };
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...lease?.metadata, name, namespace, annotations: kept },
      spec: {
        holderIdentity,
        renewTime,
        leaseDurationSeconds: Math.ceil(leaseMs / 1000),
        acquireTime: isNew ? renewTime : (lease.spec.acquireTime ?? renewTime),
        leaseTransitions: (lease?.spec?.leaseTransitions ?? 0) + (isNew ? 1 : 0),
      },
    };
    const answer =
      lease === null
        ? await api.request({ method: 'POST', path: this.#path(), body })
        : await api.request({ method: 'PUT', path: `${this.#path()}/${encodeURIComponent(name)}`, body });
    if (!answer.ok && !['conflict', 'already-exists'].includes(answer.code))
      log.warn({ reason: answer.message }, 'writing the Lease failed; retrying');
    return answer.ok;
  }

  #path(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(this.#options.namespace)}/leases`;
  }
}
