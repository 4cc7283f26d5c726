/** A container that the runtime announced before it was made. */
export interface AnnouncedContainer {
  readonly name: string;
  /** Its slice's directory. */
  readonly slice: string;
  /** Name of its control group in the form of the OCI specification; empty if the runtime does not tell. */
  readonly cgroupsPath: string;
  /** Settings that unhook the control library in it; empty if there are none. */
  readonly problems: readonly string[];
}

/** The containers that the runtime announced through the Node Resource Interface; answers from memory. */
export interface AnnouncedSource {
  get(containerId: string): AnnouncedContainer | null;
  all(): readonly AnnouncedContainer[];
}

/** The announced containers for parts that are built before their source; it has none until one is attached. */
export class AnnouncedContainers {
  #source: AnnouncedSource | null = null;

  attach(source: AnnouncedSource): void {
    this.#source = source;
  }

  get(containerId: string): AnnouncedContainer | null {
    return this.#source?.get(containerId) ?? null;
  }

  /** Names of the control groups of a slice's containers. */
  pathsOf(slice: string): readonly string[] {
    return (this.#source?.all() ?? []).flatMap((known) => (known.slice === slice ? known.cgroupsPath : []));
  }

  /** Settings in a slice's containers that keep the control library out, for the audit. */
  problemsOf(slice: string): readonly string[] {
    return (this.#source?.all() ?? []).flatMap((known) => (known.slice === slice ? known.problems : []));
  }
}
