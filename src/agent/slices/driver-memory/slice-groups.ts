import type { AnnouncedContainers, ControlGroups } from '../../runtimes/index.js';
import type { SliceOwner } from '../ports.js';
import type { Slice } from '../slice.js';

export interface SliceGroupsOptions {
  readonly groups: ControlGroups;
  readonly announced: Pick<AnnouncedContainers, 'pathsOf'>;
  /** The containers that share a slice. */
  readonly usersOf: (slice: Slice) => readonly SliceOwner[];
}

/** The group of a pod. */
export interface PodGroup {
  readonly podUid: string;
  readonly path: string;
}

/** The control groups of the containers of slices, as far as anybody has told of them, and of their pods. */
export class SliceGroups {
  readonly #options: SliceGroupsOptions;
  readonly #known = new Map<string, Set<string>>();
  readonly #pods = new Map<string, string>();

  constructor(options: SliceGroupsOptions) {
    this.#options = options;
  }

  /** The existing groups of a slice, from the runtime's announcements and the processes that greeted; never waits. */
  of(slice: Slice): readonly string[] {
    const { groups, announced } = this.#options;
    for (const path of announced.pathsOf(slice.id)) this.#add(slice, groups.named(path));
    for (const { pid } of slice.sessions) if (pid !== null) this.seen(slice, pid);
    const known = [...(this.#known.get(slice.id) ?? [])].filter((group) => groups.exists(group));
    if (known.length > 0) this.#known.set(slice.id, new Set(known));
    else this.#known.delete(slice.id);
    return known;
  }

  /** The groups of a slice at the last call of `of`. */
  known(slice: Slice): readonly string[] {
    return [...(this.#known.get(slice.id) ?? [])];
  }

  /** The existing groups of the pods that use a slice: the kubelet makes them before it makes a container. */
  ofPods(slice: Slice): readonly PodGroup[] {
    return this.podsOf(slice).flatMap((podUid) => {
      const path = this.#podGroup(podUid);
      return path === null ? [] : [{ podUid, path }];
    });
  }

  /** UIDs of the pods that use a slice. */
  podsOf(slice: Slice): readonly string[] {
    const uids = this.#options.usersOf(slice).map(({ podUid }) => podUid);
    return [...new Set(uids)].filter((podUid) => podUid !== '');
  }

  /** Whether one container at most uses a slice, in one group at most. */
  isOfOneContainer(slice: Slice): boolean {
    return this.#options.usersOf(slice).length <= 1 && this.known(slice).length <= 1;
  }

  /** A process that is said to be in a container of the slice; its control group has to belong to the same pod. */
  seen(slice: Slice, pid: number): void {
    const group = this.#options.groups.ofProcess(pid);
    const isOwn = this.#options.usersOf(slice).some(({ podUid }) => podUid !== '' && podUid === group?.podUid);
    if (group !== null && isOwn) this.#add(slice, group.path);
  }

  /** Asks the runtime for the containers of a slice. */
  async ask(slice: Slice): Promise<void> {
    for (const { podUid, container } of this.#options.usersOf(slice))
      if (podUid !== '') this.#add(slice, await this.#options.groups.ofContainer(podUid, container));
  }

  /** Forgets everything about other slices than these. */
  keepOnly(slices: ReadonlyMap<string, Slice>): void {
    for (const id of this.#known.keys()) if (!slices.has(id)) this.#known.delete(id);
    const pods = new Set([...slices.values()].flatMap((slice) => this.podsOf(slice)));
    for (const podUid of this.#pods.keys()) if (!pods.has(podUid)) this.#pods.delete(podUid);
  }

  #podGroup(podUid: string): string | null {
    const { groups } = this.#options;
    const known = this.#pods.get(podUid);
    if (known !== undefined && groups.exists(known)) return known;
    const found = groups.ofPod(podUid);
    if (found !== null) this.#pods.set(podUid, found);
    return found;
  }

  #add({ id }: Slice, group: string | null): void {
    if (group === null) return;
    const known = this.#known.get(id) ?? new Set();
    this.#known.set(id, known.add(group));
  }
}
