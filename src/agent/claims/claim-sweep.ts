import { unitsOfAllocation } from '../../gpu/claims/claim-units.js';
import type { Clock } from '../../host/clock.js';
import type { ClaimAllocator } from '../allocator/index.js';
import { CLAIM_READ_MS, type ClaimReader } from './claim-reader.js';
import { readKubeletClaims } from './kubelet-claims.js';
import type { ClaimHandler, ClaimPods } from './ports.js';

/** Finds units whose claim has ended although the kubelet did not report it, for example after a forced deletion. */
export class ClaimSweep {
  readonly #claims: ClaimAllocator;
  readonly #reader: ClaimReader;
  readonly #preparer: Pick<ClaimHandler, 'prepare'>;
  readonly #pods: ClaimPods;
  readonly #kubeletClaims: string;
  readonly #pool: string;
  readonly #clock: Clock;
  #suspects: ReadonlySet<string> = new Set();
  #confirming: Promise<void> | null = null;

  constructor(
    claims: ClaimAllocator,
    reader: ClaimReader,
    preparer: Pick<ClaimHandler, 'prepare'>,
    pods: ClaimPods,
    kubeletClaims: string,
    pool: string,
    clock: Clock,
  ) {
    this.#preparer = preparer;
    this.#pods = pods;
    this.#claims = claims;
    this.#reader = reader;
    this.#kubeletClaims = kubeletClaims;
    this.#pool = pool;
    this.#clock = clock;
  }

  /**
   * Prepares claims with assumed amounts again as soon as the API server names them and their pods: they get what was
   * allocated.
   */
  confirm(): Promise<void> {
    this.#confirming ??= this.#confirm().finally(() => (this.#confirming = null));
    return this.#confirming;
  }

  /** Waits for a call of `confirm`, which opens slices; used when the agent stops. */
  async settle(): Promise<void> {
    await this.#confirming?.catch(() => undefined);
  }

  /** True while the next sweep would free a unit that the last one found ended. */
  get isSuspicious(): boolean {
    return this.#suspects.size > 0;
  }

  /**
   * Frees a unit after two sweeps found its claim ended: a single answer of the API server or the kubelet is not
   * enough.
   */
  async turn(): Promise<void> {
    const kubelet = await readKubeletClaims(this.#kubeletClaims);
    if (!kubelet.ok) return;
    const named = new Set(kubelet.claims.map(({ claim }) => claim.uid));
    const { state } = this.#claims;
    const gpus = state.node.gpus.map(({ gpu }) => gpu);
    const over = new Set<string>();
    for (const unit of state.units.values()) {
      if (named.has(unit.claim.uid)) continue;
      const read = await this.#reader.read(unit.claim, CLAIM_READ_MS);
      if (read.kind === 'unknown') continue;
      if (read.kind === 'found') {
        const units = unitsOfAllocation(read.claim, { pool: this.#pool, gpus, now: this.#clock.now() });
        if (read.claim.allocation !== null && (!units.ok || units.units.some(({ id }) => id === unit.id))) continue;
      }
      over.add(unit.id);
    }
    const twice = new Set([...over].filter((id) => this.#suspects.has(id)));
    this.#suspects = over;
    if (twice.size > 0) await this.#claims.freeOver(({ id }) => twice.has(id));
  }

  async #confirm(): Promise<void> {
    const assumed = [...this.#claims.state.units.values()].filter(({ isAssumed }) => isAssumed === true);
    for (const claim of new Map(assumed.map((unit) => [unit.claim.uid, unit.claim])).values()) {
      const read = await this.#reader.read(claim, CLAIM_READ_MS);
      if (read.kind !== 'found') continue;
      const { pods } = read.claim;
      if (pods.length === 0 || pods.some(({ uid }) => this.#pods.claimUsers(uid) !== null))
        await this.#preparer.prepare([claim], () => false);
    }
  }
}
