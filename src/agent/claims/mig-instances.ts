import { DRIVER_NAME, placeName } from '../../gpu/claims/names.js';
import type { ResourceClaim } from '../../gpu/claims/resource-claim.js';
import { describeClaim } from '../../gpu/ledger/claim-unit.js';
import { isHeld, withInstance, withoutInstance } from '../../gpu/ledger/made-instance.js';
import {
  overlap,
  type FoundInstance,
  type MadeInstance,
  type MigPlace,
  type MigProfile,
} from '../../gpu/mig-partition.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { wait } from '../../host/pause.js';
import type { Allocator } from '../allocator/index.js';
import { type Destroyed, DriverError, type HealthMonitor, type MigPartitioner } from '../gpus/index.js';
import type { InstanceSource, InstanceUse } from './ports.js';

export interface MigInstancesOptions {
  readonly allocator: Allocator;
  readonly health: Pick<HealthMonitor, 'inventory'>;
  /** Null if the driver cannot divide GPUs. */
  readonly partitioner: MigPartitioner | null;
  readonly pool: string;
  readonly clock: Clock;
  readonly log: Log;
}

type Made = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The release of another claim may come seconds after the scheduler's decision. */
const ROOM_MS = 20_000;
const POLL_MS = 250;
/** How long the ledger may take to learn of a created instance. */
const KNOWN_MS = 10_000;

/** A place with everything that is known about it. */
interface Wanted extends MigPlace {
  readonly device: string;
  readonly profile: MigProfile;
}

/**
 * Creates the MIG instances that claims name, and destroys them when no claim has them. Changes pass through the
 * ledger's queue, and the checkpoint names an instance before it exists. Instances that somebody else created stay.
 */
export class MigInstances implements InstanceSource {
  readonly #options: MigInstancesOptions;
  /** By device: the number of calls that prepare a claim with it. */
  readonly #uses = new Map<string, number>();
  /** Instances that processes were found to use, to be told once. */
  readonly #used = new Set<string>();

  constructor(options: MigInstancesOptions) {
    this.#options = options;
  }

  /** True for an instance of the agent. */
  isOwn(gpuUuid: string, instance: FoundInstance): boolean {
    return this.#ownerOf(gpuUuid, instance) !== undefined;
  }

  use(): InstanceUse {
    const devices: string[] = [];
    return {
      ensure: async (claim) => {
        for (const wanted of this.#wantedOf(claim)) {
          devices.push(wanted.device);
          this.#uses.set(wanted.device, (this.#uses.get(wanted.device) ?? 0) + 1);
          const made = await this.#ensure(wanted);
          if (!made.ok) return { ok: false, reason: `${describeClaim(claim)}: ${made.reason}` };
        }
        return { ok: true };
      },
      end: async () => {
        for (const device of devices) {
          const left = (this.#uses.get(device) ?? 1) - 1;
          if (left === 0) this.#uses.delete(device);
          else this.#uses.set(device, left);
        }
        if (devices.length > 0) await this.destroyUnused();
      },
    };
  }

  /** After a start: instances of units that a lost checkpoint did not name are the agent's, and unused ones go. */
  async restore(): Promise<void> {
    const { ledger } = this.#options.allocator;
    await ledger.run(async () => {
      const before = ledger.state;
      const placed = new Map(before.node.gpus.flatMap(({ gpu }) => (gpu.instance?.placement ? [[gpu.uuid, gpu]] : [])));
      for (const unit of before.units.values())
        for (const { device, gpuUuid } of unit.devices) {
          const instance = placed.get(gpuUuid)?.instance;
          if (unit.admin || instance?.placement === undefined) continue;
          if (ledger.state.instances.get(device)?.uuid === gpuUuid) continue;
          const place = { gpuUuid: instance.parentUuid, ...instance.placement };
          ledger.state = withInstance(ledger.state, { device, uuid: gpuUuid, ...place });
        }
      if (ledger.state !== before) await ledger.save();
    });
    await this.destroyUnused();
  }

  /** Destroys the instances that no claim has; those that processes still use stay until the next call. */
  async destroyUnused(): Promise<void> {
    const { ledger } = this.#options.allocator;
    for (const { device } of ledger.state.instances.values())
      await ledger.run(async () => {
        const made = ledger.state.instances.get(device);
        if (made !== undefined && !this.#isInUse(made)) await this.#destroy(made);
      });
  }

  #isInUse(made: MadeInstance): boolean {
    return this.#uses.has(made.device) || isHeld(this.#options.allocator.state, made);
  }

  /** The places of a claim's allocation at which instances are created. */
  #wantedOf({ allocation }: ResourceClaim): readonly Wanted[] {
    const { health, pool } = this.#options;
    const names = new Set(
      (allocation?.results ?? [])
        .filter((result) => result.driver === DRIVER_NAME && result.pool === pool && !result.adminAccess)
        .map(({ device }) => device),
    );
    if (names.size === 0) return [];
    return (health.inventory.partitionable ?? []).flatMap(({ gpu, profiles }) =>
      profiles.flatMap((profile) =>
        profile.starts.flatMap((start): Wanted[] => {
          const place = { gpuUuid: gpu.uuid, profileId: profile.id, start };
          const device = placeName(gpu.uuid, profile.name, place);
          return names.has(device) ? [{ ...place, device, profile }] : [];
        }),
      ),
    );
  }

  async #ensure(wanted: Wanted): Promise<Made> {
    const { allocator, partitioner, clock } = this.#options;
    if (partitioner === null) return { ok: false, reason: 'the GPU driver cannot create MIG instances' };
    const deadline = clock.now() + ROOM_MS;
    for (;;) {
      const made = await allocator.ledger.run(() => this.#make(wanted, partitioner));
      if ('uuid' in made) return this.#untilKnown(made.uuid);
      if (!made.isBusy || clock.now() >= deadline) return { ok: false, reason: made.reason };
      await wait(clock, POLL_MS);
    }
  }

  /** Runs in the ledger's queue. */
  async #make(
    wanted: Wanted,
    partitioner: MigPartitioner,
  ): Promise<{ readonly uuid: string } | { readonly isBusy: boolean; readonly reason: string }> {
    const { allocator, log } = this.#options;
    const { ledger } = allocator;
    const { device, gpuUuid, profileId, start, profile } = wanted;
    const what = `MIG instance ${profile.name} at memory slice ${start} of GPU ${gpuUuid}`;
    try {
      const found = await partitioner.instances(gpuUuid);
      for (const other of found.filter((one) => overlap(one, { start, size: profile.size }))) {
        const owner = this.#ownerOf(gpuUuid, other);
        const [uuid] = other.uuids;
        if (owner?.device === device && owner.uuid === uuid && uuid !== undefined) return { uuid };
        const label = uuid ?? `GPU instance ${other.gpuInstance}`;
        if (owner !== undefined && owner.device !== device && this.#isInUse(owner))
          return { isBusy: true, reason: `cannot create ${what}: ${label} is there, and its claim is not released` };
        const result = owner === undefined ? 'foreign' : await destroyMade(partitioner, owner);
        if (result === 'in-use') return { isBusy: true, reason: `cannot create ${what}: processes still use ${label}` };
        if (owner !== undefined) await this.#forget(owner);
        if (result === 'foreign')
          return {
            isBusy: false,
            reason: `cannot create ${what}: ${label} is there, which this agent did not create; destroy it with nvidia-smi mig, or leave this GPU out of --mig-strategy=dynamic by turning its MIG mode off`,
          };
      }
      await this.#record({ device, gpuUuid, profileId, start, uuid: null });
      if (ledger.unsaved)
        return {
          isBusy: false,
          reason: `${what} is not created, because the checkpoint cannot be written; see the log of the agent`,
        };
      const uuid = await this.#create(wanted, partitioner);
      await this.#record({ device, gpuUuid, profileId, start, uuid });
      log.info({ gpu: gpuUuid, profile: profile.name, start, uuid }, 'MIG instance created');
      return { uuid };
    } catch (error) {
      return { isBusy: false, reason: `cannot create ${what}: ${(error as Error).message}` };
    }
  }

  /** A refusal of the driver leaves no record: what is at the place then belongs to somebody else. */
  async #create(wanted: Wanted, partitioner: MigPartitioner): Promise<string> {
    const { ledger } = this.#options.allocator;
    try {
      return await partitioner.create(wanted);
    } catch (error) {
      const { gpuUuid, profileId, start, device } = wanted;
      const left = await partitioner.instances(gpuUuid).catch(() => null);
      const isHalfMade = (one: FoundInstance): boolean =>
        one.profileId === profileId && one.start === start && one.uuids.length === 0;
      // A call that timed out may still create the instance.
      const isRefused = error instanceof DriverError && error.code === 'failed';
      const record = ledger.state.instances.get(device);
      if (isRefused && left !== null && !left.some(isHalfMade) && record !== undefined) await this.#forget(record);
      throw error;
    }
  }

  async #record(instance: MadeInstance): Promise<void> {
    const { ledger } = this.#options.allocator;
    ledger.state = withInstance(ledger.state, instance);
    const { uuid } = instance;
    if (uuid !== null) ledger.state = { ...ledger.state, modes: new Map(ledger.state.modes).set(uuid, 'claims') };
    await ledger.save();
  }

  /** Drops a record. The counters then leave out whatever instance is at its place, like those of other owners. */
  async #forget(instance: MadeInstance): Promise<void> {
    const { allocator } = this.#options;
    allocator.ledger.state = withoutInstance(allocator.ledger.state, instance);
    await allocator.ledger.save();
    allocator.devicesChanged();
  }

  /** The record of an instance if the agent created it. */
  #ownerOf(gpuUuid: string, { profileId, start, uuids }: FoundInstance): MadeInstance | undefined {
    return [...this.#options.allocator.state.instances.values()].find(
      (made) =>
        made.gpuUuid === gpuUuid &&
        made.profileId === profileId &&
        made.start === start &&
        (made.uuid === null || uuids.every((uuid) => uuid === made.uuid)),
    );
  }

  /** Waits until the ledger's node has the instance. */
  async #untilKnown(uuid: string): Promise<Made> {
    const { allocator, clock } = this.#options;
    const deadline = clock.now() + KNOWN_MS;
    while (!allocator.state.node.gpus.some(({ gpu }) => gpu.uuid === uuid)) {
      if (clock.now() >= deadline)
        return {
          ok: false,
          reason: `the driver created MIG instance ${uuid} and does not list it; the kubelet retries`,
        };
      await wait(clock, 10);
    }
    return { ok: true };
  }

  /** Runs in the ledger's queue. */
  async #destroy(made: MadeInstance): Promise<void> {
    const { partitioner, log } = this.#options;
    const { gpuUuid, uuid, device } = made;
    if (partitioner === null) return;
    try {
      const result = await destroyMade(partitioner, made);
      if (result === 'in-use') {
        if (!this.#used.has(device))
          log.warn({ gpu: gpuUuid, uuid, device }, 'processes still use a MIG instance: it is destroyed when they end');
        this.#used.add(device);
        return;
      }
      this.#used.delete(device);
      await this.#forget(made);
      if (result === 'foreign')
        log.warn({ gpu: gpuUuid, uuid, device }, 'somebody else created the MIG instance at this place: it stays');
      else log.info({ gpu: gpuUuid, uuid, device }, 'MIG instance destroyed');
    } catch (error) {
      log.error({ err: error, gpu: gpuUuid, uuid, device }, 'a MIG instance cannot be destroyed; retrying');
    }
  }
}

/**
 * Destroys the instance of a record. One without a recorded UUID was never given to a claim: if a process uses what is
 * there, somebody else created it in the meantime.
 */
async function destroyMade(partitioner: MigPartitioner, made: MadeInstance): Promise<Destroyed> {
  const result = await partitioner.destroy(made, made.uuid);
  return result === 'in-use' && made.uuid === null ? 'foreign' : result;
}
