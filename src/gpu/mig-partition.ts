import type { Gpu } from './gpu.js';

/** A MIG profile of a GPU, with what an instance of it takes. */
export interface MigProfile {
  /** The driver's number of the profile on this GPU. */
  readonly id: number;
  /** Such as `1g.10gb`. */
  readonly name: string;
  readonly memoryBytes: number;
  readonly multiprocessors: number;
  /** Engines for copies, video and images, by name; those that it lacks are left out. */
  readonly engines: Readonly<Record<string, number>>;
  /** Memory slices at which its instances may start. */
  readonly starts: readonly number[];
  /** Number of memory slices of an instance. */
  readonly size: number;
}

/** A place of a GPU at which an instance of a profile exists or can be created. */
export interface MigPlace {
  readonly gpuUuid: string;
  readonly profileId: number;
  /** The first memory slice. */
  readonly start: number;
}

/**
 * A MIG instance that the agent created for a claim. It is recorded before it is created, and until it is destroyed, so
 * that no crash leaves an instance that nobody destroys.
 */
export interface MadeInstance extends MigPlace {
  /** Name of the published device. */
  readonly device: string;
  /** Null while it is being created. */
  readonly uuid: string | null;
}

/** A GPU instance that exists. */
export interface FoundInstance {
  readonly profileId: number;
  readonly start: number;
  readonly size: number;
  /** Id of the GPU instance. */
  readonly gpuInstance: number;
  /** UUIDs of its compute instances; none if its creation was interrupted. */
  readonly uuids: readonly string[];
}

/** A GPU in MIG mode that the agent divides as claims need it. */
export interface PartitionableGpu<G extends Gpu = Gpu> {
  readonly gpu: G;
  readonly profiles: readonly MigProfile[];
  /** All GPU instances that it has now, whoever created them. */
  readonly found: readonly FoundInstance[];
}

/** Amounts of the counters of a GPU, by name. */
export type Counters = Readonly<Record<string, number>>;

/** True if both are at one memory slice at least. */
export function overlap(
  a: { readonly start: number; readonly size: number },
  b: { readonly start: number; readonly size: number },
): boolean {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

/** What an instance takes of its GPU: each of its memory slices by position, multiprocessors, and engines. */
export function countersOf({ multiprocessors, engines, size }: MigProfile, start: number): Counters {
  return {
    multiprocessors,
    ...engines,
    ...Object.fromEntries(Array.from({ length: size }, (_, at) => [`memory-slice-${start + at}`, 1])),
  };
}

/**
 * What a GPU has of each counter: as much as its largest profile takes, less what instances take that stay. `stays`
 * selects the found instances that are not the agent's.
 */
export function countersOfGpu(
  { profiles, found }: PartitionableGpu,
  stays: (instance: FoundInstance) => boolean,
): Counters {
  const total: Record<string, number> = {};
  for (const profile of profiles)
    for (const start of profile.starts)
      for (const [name, amount] of Object.entries(countersOf(profile, start)))
        total[name] = Math.max(total[name] ?? 0, amount);
  for (const instance of found) {
    const profile = profiles.find(({ id }) => id === instance.profileId);
    if (profile === undefined || !stays(instance)) continue;
    for (const [name, amount] of Object.entries(countersOf(profile, instance.start)))
      total[name] = Math.max(0, (total[name] ?? 0) - amount);
  }
  return total;
}

/**
 * All places of a GPU in the order in which they are best taken: small profiles first, and of each profile the place
 * that leaves the most room for larger ones. A first fit then keeps the GPU free for large instances longest.
 */
export function placesOf({
  profiles,
}: Pick<PartitionableGpu, 'profiles'>): readonly { readonly profile: MigProfile; readonly start: number }[] {
  const all = profiles.flatMap((profile) => profile.starts.map((start) => ({ profile, start })));
  const lost = ({ profile, start }: (typeof all)[number]): number =>
    all
      .filter((other) => overlap({ start, size: profile.size }, { start: other.start, size: other.profile.size }))
      .reduce((sum, other) => sum + other.profile.size, 0);
  return all
    .map((place) => ({ place, lost: lost(place) }))
    .sort(
      (a, b) =>
        a.place.profile.memoryBytes - b.place.profile.memoryBytes ||
        a.place.profile.multiprocessors - b.place.profile.multiprocessors ||
        a.place.profile.id - b.place.profile.id ||
        a.lost - b.lost ||
        b.place.start - a.place.start,
    )
    .map(({ place }) => place);
}
