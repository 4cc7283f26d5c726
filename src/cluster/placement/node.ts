import { ANY_GPUS, type GpuSelection } from '../../gpu/gpu-selection.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { GpuSlot } from '../../gpu/placement/slot.js';
import type { Charge, GpuSite } from '../../gpu/pods/pod-demand.js';
import { factorOf, roomFor, type HeldAmount } from '../../gpu/offer.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';

/** One GPU of a node, as the node publishes it. */
export interface NodeGpu {
  readonly gpu: Gpu;
  /** False when unhealthy or excluded: no pod is placed there. */
  readonly usable: boolean;
  /** Foreign processes use it: whole GPUs are chosen elsewhere first. */
  readonly foreign: boolean;
  /** Free cores that the node publishes. They may be older than the placed pods here, so the smaller of both counts. */
  readonly freeCores: number;
  readonly freeMemoryBytes: number;
  /** The same for suspendable pods, where the node has a suspend factor. */
  readonly offered?: { readonly freeCores: number; readonly freeMemoryBytes: number };
}

/** A node, without the pods on it. `gpus[i]` is the GPU at position i of the topology. */
export interface NodeShape extends GpuSite {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly gpus: readonly NodeGpu[];
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  /** Whether running containers may get more than they request: room is kept for what they ask for. Absent: no. */
  readonly allowsResize?: boolean;
  /** How many times its real capacity each GPU offers, the rest to suspendable pods; absent: 1. */
  readonly suspendFactor?: number;
}

/** Free capacity of a node, which placement and policies read and a fit simulation changes. */
export interface FreeState {
  readonly cores: Float64Array;
  readonly memory: Float64Array;
  cpuMilli: number;
  hostMemoryBytes: number;
}

/** Of a demand, what decides whether it finds the capacity for suspendable pods. */
type Asking = Pick<Demand, 'selection'>;

/** Shared by all nodes without reservations, which is most of them. */
const NONE: readonly (readonly Charge[])[] = [];

/** Versions differ between nodes too: another node may take over a slot. */
let lastVersion = 0;

/**
 * A node of the cluster with its placed pods and reservations. Placed pods are bound, or this process decided about
 * them; reservations (`reserve`) are for pods whose node is still open. `version` grows with each change of a placed
 * pod or of the shape, not of a reservation.
 */
export class ClusterNode {
  /** Dense number for tables indexed by node; reused after the node is removed. */
  readonly slot: number;
  #shape: NodeShape;
  #usedCores: Float64Array;
  #usedMemory: Float64Array;
  #usedCpuMilli = 0;
  #usedHostMemory = 0;
  #reserved: readonly (readonly Charge[])[] = NONE;
  #free: FreeState;
  /** By position, the charges of suspendable pods; null on a node that offers no more than it has. */
  #suspendable: Charge[][] | null = null;
  #offered: FreeState | null = null;
  #uniform = true;
  #oneModel = true;
  #sharesSms = false;
  #wholeCount = 0;
  #usableCount = 0;
  #largestGpuBytes = 0;
  version = 0;

  constructor(slot: number, shape: NodeShape) {
    this.slot = slot;
    this.#shape = shape;
    this.#usedCores = new Float64Array(shape.gpus.length);
    this.#usedMemory = new Float64Array(shape.gpus.length);
    this.#free = emptyState(shape.gpus.length);
    this.#openOffer();
    this.#refresh();
  }

  get shape(): NodeShape {
    return this.#shape;
  }

  get name(): string {
    return this.#shape.name;
  }

  /** All usable GPUs have the same memory: the choice among equally free GPUs does not change which pods fit. */
  get uniform(): boolean {
    return this.#uniform;
  }

  /** All usable GPUs have the same memory and model. */
  get alike(): boolean {
    return this.#uniform && this.#oneModel;
  }

  /** Whether some of its GPUs are for pods that share multiprocessors. */
  get sharesSms(): boolean {
    return this.#sharesSms;
  }

  /** Free capacity for pods that must run, ignoring reservations. Must not be changed. */
  get free(): FreeState {
    return this.#free;
  }

  /** `free` as this demand finds it: on a node with a suspend factor there is more for suspendable pods. */
  freeFor({ selection }: Asking): FreeState {
    return selection.suspendable === true && this.#offered !== null ? this.#offered : this.#free;
  }

  /** Writes the capacity into `into` on which a suspendable pod would run without turns. */
  copyUnshared(into: FreeState): void {
    copyState(this.#free, into);
    for (const [at, { gpu }] of this.#shape.gpus.entries()) {
      const [cores, bytes] = [into.cores[at] as number, into.memory[at] as number];
      into.cores[at] = Math.max(0, Math.min(cores, CORES_PER_GPU - (this.#usedCores[at] as number)));
      into.memory[at] = Math.max(0, Math.min(bytes, gpu.memoryBytes - (this.#usedMemory[at] as number)));
    }
  }

  /** Number of usable GPUs without placed pods, ignoring reservations. */
  get wholeCount(): number {
    return this.#wholeCount;
  }

  /** Number of GPUs that pods may get, free or not. */
  get usableCount(): number {
    return this.#usableCount;
  }

  /** Memory of the largest usable GPU. */
  get largestGpuBytes(): number {
    return this.#largestGpuBytes;
  }

  get isReserved(): boolean {
    return this.#reserved.length > 0;
  }

  /** Replaces the description of the node. True when the GPUs changed, so that placed pods must be computed again. */
  reshape(shape: NodeShape): boolean {
    const same =
      shape.gpus.length === this.#shape.gpus.length &&
      shape.allowsResize === this.#shape.allowsResize &&
      shape.suspendFactor === this.#shape.suspendFactor &&
      shape.gpus.every(({ gpu }, at) => {
        const before = this.#shape.gpus[at]?.gpu;
        return gpu.uuid === before?.uuid && (gpu.uuid !== '' || gpu.index === before.index);
      });
    this.#shape = shape;
    if (!same) {
      this.#usedCores = new Float64Array(shape.gpus.length);
      this.#usedMemory = new Float64Array(shape.gpus.length);
      this.#usedCpuMilli = 0;
      this.#usedHostMemory = 0;
      this.#reserved = NONE;
      this.#free = emptyState(shape.gpus.length);
      this.#openOffer();
    }
    this.#refresh();
    return !same;
  }

  /** Charges the amounts of a pod; `sign` -1 releases them. */
  charge(charges: readonly Charge[], cpuMilli: number, hostMemoryBytes: number, sign: 1 | -1): void {
    for (const charge of charges) {
      const { position, cores, memoryBytes } = charge;
      if (position >= this.#usedCores.length) continue;
      if (charge.suspendable === true) this.#chargeOffer(charge, sign);
      this.#usedCores[position] = (this.#usedCores[position] as number) + sign * cores;
      this.#usedMemory[position] = (this.#usedMemory[position] as number) + sign * memoryBytes;
    }
    this.#usedCpuMilli += sign * cpuMilli;
    this.#usedHostMemory += sign * hostMemoryBytes;
    this.#refresh();
  }

  /** Adds a reservation. Pass the same list to `unreserve`. */
  reserve(charges: readonly Charge[]): void {
    this.#reserved = this.#reserved.length === 0 ? [charges] : [...this.#reserved, charges];
  }

  unreserve(charges: readonly Charge[]): void {
    this.#reserved =
      this.#reserved.length === 1 && this.#reserved[0] === charges
        ? NONE
        : this.#reserved.filter((entry) => entry !== charges);
  }

  /** Writes the free capacity minus reservations into `into`, which must have room for the node's GPUs. */
  copyUnreserved(into: FreeState, asking: Asking): void {
    copyState(this.freeFor(asking), into);
    for (const charges of this.#reserved) {
      for (const { position, cores, memoryBytes } of charges) {
        into.cores[position] = Math.max(0, (into.cores[position] as number) - cores);
        into.memory[position] = Math.max(0, (into.memory[position] as number) - memoryBytes);
      }
    }
  }

  /** The free capacity for this demand if these charges were removed, like `copyFreeWith`. */
  without(charges: readonly Charge[], asking: Asking): FreeState {
    const [freed, state] = [emptyState(this.#shape.gpus.length), emptyState(this.#shape.gpus.length)];
    addCharges(freed, charges, 1);
    this.copyFreeWith(freed, state);
    if (this.#suspendable === null) return state;
    const before = this.freeFor(asking);
    for (const [at, { usable }] of this.#shape.gpus.entries()) {
      const [now, then] = [this.#roomAt(at, [], asking), this.#roomAt(at, charges, asking)];
      state.cores[at] = usable ? (before.cores[at] as number) + then.cores - now.cores : 0;
      state.memory[at] = usable ? (before.memory[at] as number) + then.memoryBytes - now.memoryBytes : 0;
    }
    return state;
  }

  /**
   * Writes the free capacity and what pods would free into `into`; the free cores that the node publishes are assumed
   * to grow with it. CPU and memory of the host do not limit.
   */
  copyFreeWith(freed: FreeState, into: FreeState): void {
    const { gpus } = this.#shape;
    for (let at = 0; at < gpus.length; at++) {
      const { usable, gpu } = gpus[at] as NodeGpu;
      const cores = (this.#free.cores[at] as number) + (freed.cores[at] as number);
      const bytes = (this.#free.memory[at] as number) + (freed.memory[at] as number);
      into.cores[at] = usable ? Math.max(0, Math.min(CORES_PER_GPU, cores)) : 0;
      into.memory[at] = usable ? Math.max(0, Math.min(gpu.memoryBytes, bytes)) : 0;
    }
    into.cpuMilli = Infinity;
    into.hostMemoryBytes = Infinity;
  }

  /** Charged cores and memory of a GPU; more than the GPU has if another scheduler placed pods there. */
  used(position: number): { readonly cores: number; readonly memoryBytes: number } {
    return { cores: this.#usedCores[position] ?? 0, memoryBytes: this.#usedMemory[position] ?? 0 };
  }

  #refresh(): void {
    this.version = ++lastVersion;
    const { gpus } = this.#shape;
    let memory = -1;
    let model: string | null = null;
    this.#uniform = true;
    this.#oneModel = true;
    this.#sharesSms = gpus.some(({ gpu }) => gpu.compute === 'sm');
    this.#wholeCount = 0;
    this.#usableCount = 0;
    this.#largestGpuBytes = 0;
    for (const [at, gpu] of gpus.entries()) {
      const cores = Math.min(CORES_PER_GPU - (this.#usedCores[at] as number), gpu.freeCores);
      const bytes = Math.min(gpu.gpu.memoryBytes - (this.#usedMemory[at] as number), gpu.freeMemoryBytes);
      this.#free.cores[at] = gpu.usable ? Math.max(0, cores) : 0;
      this.#free.memory[at] = gpu.usable ? Math.max(0, bytes) : 0;
      if (!gpu.usable) continue;
      this.#usableCount++;
      this.#largestGpuBytes = Math.max(this.#largestGpuBytes, gpu.gpu.memoryBytes);
      if (this.#free.cores[at] === CORES_PER_GPU) this.#wholeCount++;
      if (memory >= 0 && memory !== gpu.gpu.memoryBytes) this.#uniform = false;
      if (model !== null && model !== gpu.gpu.model) this.#oneModel = false;
      memory = gpu.gpu.memoryBytes;
      model = gpu.gpu.model;
    }
    this.#free.cpuMilli = this.#shape.cpuMilli - this.#usedCpuMilli;
    this.#free.hostMemoryBytes = this.#shape.hostMemoryBytes - this.#usedHostMemory;
    this.#refreshOffer();
  }

  #openOffer(): void {
    const { gpus, suspendFactor = 1 } = this.#shape;
    this.#suspendable = suspendFactor > 1 ? gpus.map(() => []) : null;
    this.#offered = suspendFactor > 1 ? emptyState(gpus.length) : null;
  }

  #chargeOffer(charge: Charge, sign: 1 | -1): void {
    const known = this.#suspendable?.[charge.position];
    if (known === undefined) return;
    const isSame = ({ cores, memoryBytes }: Charge): boolean =>
      cores === charge.cores && memoryBytes === charge.memoryBytes;
    if (sign > 0) known.push(charge);
    else if (known.some(isSame)) known.splice(known.findIndex(isSame), 1);
  }

  /** Both states of a node with a suspend factor. */
  #refreshOffer(): void {
    if (this.#offered === null) return;
    for (const [at, gpu] of this.#shape.gpus.entries()) {
      for (const [state, selection, told] of [
        [this.#free, ANY_GPUS, gpu],
        [this.#offered, SUSPENDABLE, gpu.offered ?? gpu],
      ] as const) {
        const room = this.#roomAt(at, [], { selection });
        state.cores[at] = gpu.usable ? Math.min(room.cores, told.freeCores) : 0;
        state.memory[at] = gpu.usable ? Math.min(room.memoryBytes, told.freeMemoryBytes) : 0;
      }
    }
    this.#offered.cpuMilli = this.#free.cpuMilli;
    this.#offered.hostMemoryBytes = this.#free.hostMemoryBytes;
  }

  /** The room by the charges alone, without those of `freed`. */
  #roomAt(at: number, freed: readonly Charge[], { selection }: Asking): { cores: number; memoryBytes: number } {
    const { gpu } = this.#shape.gpus[at] as NodeGpu;
    const gone = freed.filter(({ position }) => position === at);
    const kept = [...(this.#suspendable?.[at] ?? [])];
    for (const charge of gone.filter(({ suspendable }) => suspendable === true)) {
      const found = kept.findIndex(
        ({ cores, memoryBytes }) => cores === charge.cores && memoryBytes === charge.memoryBytes,
      );
      if (found >= 0) kept.splice(found, 1);
    }
    const room = (real: number, used: number, of: (charge: Charge) => number): number => {
      const sum = (charges: readonly Charge[]): number => charges.reduce((total, charge) => total + of(charge), 0);
      const suspendable = sum(kept);
      const running = used - sum(gone) - suspendable;
      const held: HeldAmount = { running, suspendable, largest: Math.max(0, ...kept.map(of)) };
      return roomFor(real, factorOf(gpu, this.#shape.suspendFactor), held, selection.suspendable === true);
    };
    return {
      cores: room(CORES_PER_GPU, this.#usedCores[at] as number, ({ cores }) => cores),
      memoryBytes: room(gpu.memoryBytes, this.#usedMemory[at] as number, ({ memoryBytes }) => memoryBytes),
    };
  }
}

const SUSPENDABLE: GpuSelection = { ...ANY_GPUS, suspendable: true };

/** A state for `gpus` GPUs. */
export function emptyState(gpus: number): FreeState {
  return { cores: new Float64Array(gpus), memory: new Float64Array(gpus), cpuMilli: 0, hostMemoryBytes: 0 };
}

/** Copies one state into another that has room for it. */
export function copyState(from: FreeState, into: FreeState): void {
  into.cores.set(from.cores);
  into.memory.set(from.memory);
  into.cpuMilli = from.cpuMilli;
  into.hostMemoryBytes = from.hostMemoryBytes;
}

/** Adds the amounts of charges to a state, or subtracts them; positions without a GPU are left out. */
export function addCharges(state: FreeState, charges: readonly Charge[], sign: 1 | -1): void {
  for (const { position, cores, memoryBytes } of charges) {
    if (position >= state.cores.length) continue;
    state.cores[position] = (state.cores[position] as number) + sign * cores;
    state.memory[position] = (state.memory[position] as number) + sign * memoryBytes;
  }
}

/** The GPUs as node-level placement sees them in this state. */
export function slotsOf(shape: NodeShape, state: FreeState): GpuSlot[] {
  return shape.gpus.map((entry, at) => ({
    gpu: entry.gpu,
    freeCores: state.cores[at] as number,
    freeMemoryBytes: state.memory[at] as number,
    processCount: entry.foreign ? 1 : 0,
    usable: entry.usable,
  }));
}

/** Free cores of all GPUs. */
export function sumCores(state: FreeState): number {
  let sum = 0;
  for (const cores of state.cores) sum += cores;
  return sum;
}

/** Free memory of all GPUs. */
export function sumMemory(state: FreeState): number {
  let sum = 0;
  for (const bytes of state.memory) sum += bytes;
  return sum;
}
