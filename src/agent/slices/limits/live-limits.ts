/**
 * Limits that change while a container runs: the requests of limit annotations and operator, within the allocation;
 * whether they are enforced, and how much memory the container may hold beyond them. Pure.
 */
import { ENFORCEMENT_KEY, MEMORY_OVERSUBSCRIBE_KEY } from '../../../gpu/annotations.js';
import type { DeviceLimit } from '../../../abi/limits-file.js';
import { isHigher, type Priority } from '../../../gpu/priority.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';
import {
  LIMIT_ANNOTATIONS,
  readContainerAnnotation,
  type ContainerAnnotation,
} from '../../../kube/limit-annotations.js';

/** The requested limits of one container; null: as allocated. */
export interface LimitRequest {
  /** Bytes, in sum over all its GPUs. */
  readonly memoryBytes: number | null;
  /** Cores of each of its GPUs. */
  readonly share: number | null;
  /** Cores of each GPU that it may use while other containers leave the GPU idle. */
  readonly softLimit: number | null;
  /** Null or absent: as allocated. */
  readonly priority?: Priority | null;
}

export const NO_REQUEST: LimitRequest = { memoryBytes: null, share: null, softLimit: null };

/** The valid parts of a request, and a sentence for each invalid part. */
export interface ReadRequest {
  readonly request: LimitRequest;
  readonly problems: readonly string[];
}

/**
 * Reads the annotations of a pod for one of its containers. A single value applies to every container, a list such as
 * `main=16,side=4` to the named ones. An invalid value is ignored.
 */
export function readLimitAnnotations(annotations: ReadonlyMap<string, string>, container: string): ReadRequest {
  const problems: string[] = [];
  const read = <T>(annotation: ContainerAnnotation<T>): T | null => {
    const { value, problem } = readContainerAnnotation(annotation, (key) => annotations.get(key), container);
    if (problem !== undefined) problems.push(problem);
    return value ?? null;
  };
  const request: LimitRequest = {
    memoryBytes: read(LIMIT_ANNOTATIONS.memory),
    share: read(LIMIT_ANNOTATIONS.share),
    softLimit: read(LIMIT_ANNOTATIONS.softLimit),
  };
  const priority = read(LIMIT_ANNOTATIONS.priority);
  return { request: priority === null ? request : { ...request, priority }, problems };
}

/** Fields of `over` that are not null win. */
export function mergeRequests(request: LimitRequest, over: LimitRequest): LimitRequest {
  const priority = over.priority ?? request.priority ?? null;
  return {
    memoryBytes: over.memoryBytes ?? request.memoryBytes,
    share: over.share ?? request.share,
    softLimit: over.softLimit ?? request.softLimit,
    ...(priority === null ? {} : { priority }),
  };
}

/** The lower of both requests in each field; null fields request nothing. */
export function lowestRequest(a: LimitRequest, b: LimitRequest): LimitRequest {
  const lower = (x: number | null, y: number | null): number | null =>
    x === null || y === null ? (x ?? y) : Math.min(x, y);
  const [first, second] = [a.priority ?? null, b.priority ?? null];
  const priority = first === null || second === null ? (first ?? second) : isHigher(first, second) ? second : first;
  return {
    memoryBytes: lower(a.memoryBytes, b.memoryBytes),
    share: lower(a.share, b.share),
    softLimit: lower(a.softLimit, b.softLimit),
    ...(priority === null ? {} : { priority }),
  };
}

/** The limits in force, and one sentence for each part of the request that could not be satisfied. */
export interface HeldLimits {
  readonly devices: readonly DeviceLimit[];
  readonly notes: readonly string[];
}

/**
 * The limits of one container by GPU, computed from its allocation and the request: never more than allocated. Memory
 * is divided among its GPUs in the same proportions as in the allocation.
 */
export function holdLimits(given: readonly DeviceLimit[], request: LimitRequest): HeldLimits {
  const notes: string[] = [];
  const memory = heldMemory(given, request.memoryBytes, notes);
  const bare = given.every(({ memoryBytes, share }) => memoryBytes === null && share >= CORES_PER_GPU);
  if (bare && (request.share ?? CORES_PER_GPU) < CORES_PER_GPU) {
    notes.push('whole GPUs without a memory limit run without limits, so no share can be set');
  }
  const devices = given.map((device, index): DeviceLimit => {
    const share = bare ? device.share : Math.min(device.share, request.share ?? device.share);
    if (!bare && request.share !== null && request.share > device.share)
      notes.push(`the share stays ${device.share}, which is what was allocated; ${request.share} is more`);
    const soft = request.softLimit ?? device.softLimit;
    return {
      memoryBytes: memory[index] ?? null,
      share,
      softLimit: soft !== null && share < CORES_PER_GPU && soft > share ? soft : null,
      ...heldPriority(device, share, request.priority ?? null, notes),
    };
  });
  return { devices, notes: [...new Set(notes)] };
}

/** The pod may lower the priority that its claim gave. Without such a priority, the pod sets it. */
function heldPriority(
  { priority: given }: DeviceLimit,
  share: number,
  asked: Priority | null,
  notes: string[],
): Pick<DeviceLimit, 'priority'> {
  if (asked !== null && given !== undefined && isHigher(asked, given))
    notes.push(`the priority stays ${given}, which is what was allocated; ${asked} is higher`);
  const priority = asked !== null && (given === undefined || !isHigher(asked, given)) ? asked : given;
  if (priority === undefined || priority === 'normal') return {};
  if (share >= CORES_PER_GPU) {
    notes.push(`the priority ${priority} has no effect: no other container uses its GPUs`);
    return {};
  }
  return { priority };
}

function heldMemory(given: readonly DeviceLimit[], asked: number | null, notes: string[]): (number | null)[] {
  const own = given.map(({ memoryBytes }) => memoryBytes);
  if (asked === null) return own;
  const total = own.reduce((sum: number | null, bytes) => (sum === null || bytes === null ? null : sum + bytes), 0);
  if (total === null || total === 0) {
    notes.push('the container has whole GPUs without a memory limit, so no memory limit can be set');
    return own;
  }
  if (asked > total)
    notes.push(`the memory stays ${mebibytes(total)}, which is what was allocated; ${mebibytes(asked)} is more`);
  return asked >= total ? own : own.map((bytes) => Math.floor((bytes ?? 0) * (asked / total)));
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}

/** The lower of both limits on each GPU. */
export function lowestLimits(a: readonly DeviceLimit[], b: readonly DeviceLimit[]): DeviceLimit[] {
  const lower = (x: number | null, y: number | null): number | null =>
    x === null || y === null ? (x ?? y) : Math.min(x, y);
  return a.map((one, at): DeviceLimit => {
    const other = b[at];
    if (other === undefined) return one;
    const share = Math.min(one.share, other.share);
    // A hard limit is lower than any soft limit.
    const soft = one.softLimit === null || other.softLimit === null ? null : Math.min(one.softLimit, other.softLimit);
    const [first, second] = [one.priority ?? 'normal', other.priority ?? 'normal'];
    const priority = isHigher(first, second) ? second : first;
    return {
      memoryBytes: lower(one.memoryBytes, other.memoryBytes),
      share,
      softLimit: soft !== null && soft > share ? soft : null,
      ...(priority === 'normal' ? {} : { priority }),
    };
  });
}

/** The request that leads to these limits; if the GPUs have different limits, the one of the first GPU. */
export function requestOf(held: readonly DeviceLimit[]): LimitRequest {
  const memory = held.reduce(
    (sum: number | null, { memoryBytes }) => (sum === null || memoryBytes === null ? null : sum + memoryBytes),
    0,
  );
  const [first] = held;
  return { memoryBytes: memory, share: first?.share ?? null, softLimit: first?.softLimit ?? null };
}

/** True when both lists have the same limits on every GPU. */
export function sameLimits(a: readonly DeviceLimit[], b: readonly DeviceLimit[]): boolean {
  const same = (one: DeviceLimit, other: DeviceLimit | undefined): boolean =>
    one.memoryBytes === other?.memoryBytes &&
    one.share === other.share &&
    one.softLimit === other.softLimit &&
    (one.hostBackedBytes ?? 0) === (other.hostBackedBytes ?? 0) &&
    (one.priority ?? 'normal') === (other.priority ?? 'normal');
  return a.length === b.length && a.every((one, index) => same(one, b[index]));
}

/** The limit on one GPU for events and logs: "2048 MiB, share 20, up to 60". */
export function describeLimit(limit: DeviceLimit): string {
  const beyond = limit.hostBackedBytes === undefined ? '' : ` and ${mebibytes(limit.hostBackedBytes)} on the host`;
  const memory = limit.memoryBytes === null ? 'all memory' : `${mebibytes(limit.memoryBytes)}${beyond}`;
  const upTo = limit.softLimit === null ? '' : `, up to ${limit.softLimit}`;
  const priority = limit.priority === undefined ? '' : `, priority ${limit.priority}`;
  return `${memory}, share ${limit.share}${upTo}${priority}`;
}

/** `none`: the control library passes every call on, and the audit compares use with the allocation. */

/** `problem`: why the annotation was refused; the limits are then enforced. */
export interface Enforcement {
  readonly unenforced: boolean;
  readonly problem: string | null;
}

/** Reads the annotation of a pod for one of its containers; `allowed`: the node has unenforced slices. */
export function readEnforcement(
  annotations: ReadonlyMap<string, string>,
  container: string,
  allowed: boolean,
): Enforcement {
  const { enforcement } = LIMIT_ANNOTATIONS;
  const { value = 'limits', problem } = readContainerAnnotation(enforcement, (key) => annotations.get(key), container);
  if (problem !== undefined) return enforced(problem);
  if (value === 'none' && !allowed)
    return enforced(`${ENFORCEMENT_KEY}: this node has no unenforced slices (--allow-unenforced)`);
  return { unenforced: value === 'none', problem: null };
}

function enforced(why: string): Enforcement {
  return { unenforced: false, problem: `${why}; the limits are enforced` };
}

/** A node that does not oversubscribe memory. */
export const NO_OVERSUBSCRIPTION = 1;

/**
 * The limits with host-backed memory for a container of class `low`: with this memory the container may hold `factor`
 * times its memory limit. Names the reason if that is not possible.
 */
export function oversubscribe(
  devices: readonly DeviceLimit[],
  annotations: ReadonlyMap<string, string>,
  container: string,
  factor: number,
): HeldLimits {
  const { value: memoryClass, problem } = readContainerAnnotation(
    LIMIT_ANNOTATIONS.memoryClass,
    (key) => annotations.get(key),
    container,
  );
  if (problem !== undefined) return { devices, notes: [problem] };
  if (memoryClass !== 'low') return { devices, notes: [] };
  if (factor <= NO_OVERSUBSCRIPTION)
    return withinMemory(devices, 'this node does not oversubscribe memory (--memory-oversubscription)');
  const [device] = devices;
  if (device === undefined || devices.length > 1)
    return withinMemory(
      devices,
      `only containers with one GPU can hold host-backed memory, this one has ${devices.length}`,
    );
  if (device.priority === 'high')
    return withinMemory(devices, 'a container of high priority never holds memory on the host');
  if (device.memoryBytes === null) return withinMemory(devices, 'the container has no memory limit');
  return { devices: [{ ...device, hostBackedBytes: Math.floor(device.memoryBytes * (factor - 1)) }], notes: [] };
}

function withinMemory(devices: readonly DeviceLimit[], why: string): HeldLimits {
  return { devices, notes: [`${MEMORY_OVERSUBSCRIBE_KEY}: ${why}`] };
}
