import { sliceUnits, unitsOfAllocation, type ClaimUser } from '../../gpu/claims/claim-units.js';
import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { unitsOfClaim, unitsOn } from '../../gpu/ledger/charge-unit.js';
import { describeClaim, sameDevices, type ClaimUnit, type UnitDevice } from '../../gpu/ledger/claim-unit.js';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import type { Log } from '../../host/log.js';
import type {
  ClaimHandler,
  ClaimPods,
  ClaimRefusals,
  ClaimSource,
  InstanceSource,
  InstanceUse,
  PreparedClaim,
  UnitAllocator,
} from './ports.js';

export interface ClaimPreparerOptions {
  readonly allocator: UnitAllocator;
  readonly instances: InstanceSource;
  readonly claims: ClaimSource;
  readonly pods: ClaimPods;
  readonly notices: ClaimRefusals;
  /** Name of this node's pool. */
  readonly pool: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limits of a call, for capacity and for pods to become known; tests shorten them. */
  readonly patience?: Partial<Patience>;
}

export interface Patience {
  /** Time limit for reading an unknown claim. */
  readonly readMs: number;
  /** Time limit for reading a claim that is prepared already: its known data suffices. */
  readonly rereadMs: number;
  /**
   * A release may come seconds after the scheduler's decision. The kubelet waits 45 s, and retries only after a minute.
   */
  readonly roomMs: number;
  readonly podMs: number;
}

const PATIENCE: Patience = { readMs: 5_000, rereadMs: 1_000, roomMs: 20_000, podMs: 2_000 };

const POD_POLL_MS = 10;

/** Result of reading one claim of a call. */
type ReadClaim =
  | { readonly ok: true; readonly units: readonly ClaimUnit[]; readonly pods: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Prepares claims for the kubelet: reads them, checks their allocations, assigns units that a container uses together
 * to one slice, and lets the allocator charge them and create their files. Claims are read concurrently and outside the
 * ledger's queue.
 */
export class ClaimPreparer implements ClaimHandler {
  readonly #options: ClaimPreparerOptions;
  readonly #patience: Patience;

  constructor(options: ClaimPreparerOptions) {
    this.#options = options;
    this.#patience = { ...PATIENCE, ...options.patience };
  }

  async prepare(claims: readonly ClaimRef[], givenUp: () => boolean): Promise<ReadonlyMap<string, PreparedClaim>> {
    const use = this.#options.instances.use();
    try {
      return await this.#prepare(claims, use, givenUp);
    } finally {
      await use.end();
    }
  }

  async #prepare(
    claims: readonly ClaimRef[],
    use: InstanceUse,
    givenUp: () => boolean,
  ): Promise<ReadonlyMap<string, PreparedClaim>> {
    const looked = await Promise.all(claims.map((claim) => this.#look(claim, use)));
    const users = await this.#users(new Set(looked.flatMap((entry) => (entry.ok ? entry.pods : []))));
    const sliced = this.#slice(
      looked.flatMap((entry) => (entry.ok ? entry.units : [])),
      users,
    );
    const answers = new Map<string, PreparedClaim>();
    for (const [at, claim] of claims.entries()) {
      const entry = looked[at] as ReadClaim;
      if (!entry.ok) answers.set(claim.uid, entry);
      else if (!sliced.ok) answers.set(claim.uid, { ok: false, reason: `${describeClaim(claim)}: ${sliced.reason}` });
      else
        answers.set(
          claim.uid,
          await this.#charge(
            sliced.units.filter((unit) => unit.claim.uid === claim.uid),
            givenUp,
          ),
        );
      const answer = answers.get(claim.uid);
      if (answer?.ok === false) {
        this.#options.log.warn({ claim, reason: answer.reason }, 'claim refused');
        this.#options.notices.refused(claim, answer.reason);
      }
    }
    return answers;
  }

  async unprepare(claim: ClaimRef): Promise<void> {
    await this.#options.allocator.release(claim.uid);
    await this.#options.instances.destroyUnused();
  }

  async #look(claim: ClaimRef, use: InstanceUse): Promise<ReadClaim> {
    const { allocator, claims, pool, clock } = this.#options;
    const known = unitsOfClaim(allocator.state, claim.uid).filter(({ phase }) => phase === 'prepared');
    const read = await claims.read(claim, known.length > 0 ? this.#patience.rereadMs : this.#patience.readMs);
    if (read.kind === 'gone')
      return {
        ok: false,
        reason: `${describeClaim(claim)}: not found with UID ${claim.uid} (was it deleted and created again?)`,
      };
    if (read.kind === 'unknown') {
      // A reboot removes MIG instances: only the claim's allocation says which are to be created again.
      const isGone = ({ device, gpuUuid }: UnitDevice): boolean =>
        allocator.state.instances.has(device) && !allocator.state.node.gpus.some(({ gpu }) => gpu.uuid === gpuUuid);
      if (known.length === 0 || known.some(({ devices }) => devices.some(isGone)))
        return { ok: false, reason: `${describeClaim(claim)} cannot be read: ${read.reason}; the kubelet retries` };
      return { ok: true, units: known, pods: known.flatMap(({ consumers }) => consumers.map(({ podUid }) => podUid)) };
    }
    const made = await use.ensure(read.claim);
    if (!made.ok) return made;
    const { gpus } = allocator.state.node;
    const units = unitsOfAllocation(read.claim, { pool, gpus: gpus.map(({ gpu }) => gpu), now: clock.now() });
    if (!units.ok) return units;
    const merged = units.units.map((unit) => {
      const before = known.find(({ id }) => id === unit.id);
      return before !== undefined && sameDevices(before, unit) ? before : unit;
    });
    return { ok: true, units: merged, pods: read.claim.pods.map(({ uid }) => uid) };
  }

  /** The containers of these pods. The agent may learn of a pod a little after the kubelet. */
  async #users(pods: ReadonlySet<string>): Promise<readonly ClaimUser[]> {
    const { clock } = this.#options;
    const deadline = clock.now() + this.#patience.podMs;
    for (;;) {
      const users = [...pods].map((uid) => this.#options.pods.claimUsers(uid));
      if (users.every((entry) => entry !== null) || clock.now() >= deadline)
        return users.flatMap((entry) => entry ?? []);
      await wait(clock, POD_POLL_MS);
    }
  }

  #slice(units: readonly ClaimUnit[], users: readonly ClaimUser[]) {
    const pods = new Set(users.map(({ container }) => container.podUid));
    const settled = units.filter(
      ({ phase, consumers }) => phase === 'prepared' && consumers.some(({ podUid }) => !pods.has(podUid)),
    );
    return sliceUnits(units, users, new Set(settled.map(({ id }) => id)));
  }

  /**
   * Charges the units of one claim; without capacity it retries after freeing ended claims, and then whenever a unit is
   * released.
   */
  async #charge(units: readonly ClaimUnit[], givenUp: () => boolean): Promise<PreparedClaim> {
    const { allocator, clock } = this.#options;
    const deadline = clock.now() + this.#patience.roomMs;
    for (let attempt = 0; ; attempt += 1) {
      let heard = (): void => undefined;
      const released = new Promise<void>((resolve) => (heard = resolve));
      const leave = allocator.onReleased(() => heard());
      try {
        const answer = await allocator.prepare(units, givenUp);
        if (answer.ok) return { ok: true, devices: devicesOf(answer.units) };
        const isOver = clock.now() >= deadline || givenUp();
        if (answer.code === 'nothing-fits' && isOver) this.#tellOverlap(units, answer.reason);
        if (answer.code !== 'nothing-fits' || isOver) return { ok: false, reason: answer.reason };
        if (attempt === 0) await this.#freeGone(units);
        const cancel = clock.after(Math.min(1_000, Math.max(1, deadline - clock.now())), () => heard());
        await released;
        cancel();
      } finally {
        leave();
      }
    }
  }

  #tellOverlap(units: readonly ClaimUnit[], reason: string): void {
    const { allocator, notices } = this.#options;
    const claim = units[0]?.claim;
    if (claim === undefined) return;
    const gpus = new Set(units.flatMap(({ devices }) => devices.map(({ gpuUuid }) => gpuUuid)));
    const holders = new Set([...gpus].flatMap((uuid) => unitsOn(allocator.state, uuid)));
    notices.overlapped(
      claim,
      reason,
      [...holders].filter((unit) => unit.claim.uid !== claim.uid),
    );
  }

  /** Frees holders of the same GPUs whose claim was deleted, or allocated elsewhere, without a call of the kubelet. */
  async #freeGone(units: readonly ClaimUnit[]): Promise<void> {
    const { allocator, claims, pool, clock } = this.#options;
    const { state } = allocator;
    const gpus = new Set(units.flatMap(({ devices }) => devices.map(({ gpuUuid }) => gpuUuid)));
    const holders = new Map(
      [...gpus].flatMap((uuid) => unitsOn(state, uuid)).map((unit) => [unit.claim.uid, unit.claim] as const),
    );
    for (const { claim } of units) holders.delete(claim.uid);
    const over = new Set<string>();
    await Promise.all(
      [...holders.values()].map(async (claim) => {
        const read = await claims.read(claim, this.#patience.rereadMs);
        if (read.kind === 'gone') for (const { id } of unitsOfClaim(state, claim.uid)) over.add(id);
        if (read.kind !== 'found') return;
        const present = unitsOfAllocation(read.claim, {
          pool,
          gpus: state.node.gpus.map(({ gpu }) => gpu),
          now: clock.now(),
        });
        if (read.claim.allocation !== null && !present.ok) return;
        const stays = present.ok ? present.units : [];
        for (const unit of unitsOfClaim(state, claim.uid))
          if (!stays.some((other) => other.id === unit.id && sameDevices(other, unit))) over.add(unit.id);
      }),
    );
    if (over.size > 0) await allocator.freeOver(({ id }) => over.has(id));
  }
}

function devicesOf(
  units: readonly { readonly unit: ClaimUnit; readonly cdiDevices: readonly string[] }[],
): Extract<PreparedClaim, { readonly ok: true }>['devices'] {
  return units.flatMap(({ unit, cdiDevices }) =>
    unit.devices.map(({ pool, device, shareId }, at) => ({
      request: unit.request,
      pool,
      device,
      shareId,
      cdiDevice: cdiDevices[at] ?? '',
    })),
  );
}
