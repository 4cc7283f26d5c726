/** Annotations that resize the GPU share of a running container, as `pods/resize` resizes CPU and memory. */
import { parseCores, parseMemory, valueFor } from './container-value.js';
import { VCUDA_BLOCK_BYTES } from './gpu-resources.js';

/** Pod annotation: the cores that a running container should have, more than it requested. */
export const CORE_RESIZE_KEY = 'tencent.com/vcuda-core-resize';

/** Pod annotation: the memory that a running container should have, in blocks of 256 MiB or bytes with a unit. */
export const MEMORY_RESIZE_KEY = 'tencent.com/vcuda-memory-resize';

/** Pod annotation, written by the node agent: what each resized container has, and what it waits for (JSON). */
export const RESIZE_STATUS_KEY = 'tencent.com/vcuda-resize-status';

/** What a container has, or should have, of GPUs. */
export interface GpuAmounts {
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** The annotations of a pod that say what its containers get beside their requests. */
export const RESIZE_KEYS: readonly string[] = [CORE_RESIZE_KEY, MEMORY_RESIZE_KEY, RESIZE_STATUS_KEY];

/** Reads one annotation of a pod. */
export type Annotation = (key: string) => string | undefined;

/** The resize that annotations ask for. */
export interface AskedResize {
  /** What the container should have: at least what it requested. */
  readonly amounts: GpuAmounts;
  /** A sentence for each invalid value, which is ignored. */
  readonly problems: readonly string[];
}

/** Null if no annotation asks to resize this container. */
export function readResize(annotation: Annotation, container: string, requested: GpuAmounts): AskedResize | null {
  const problems: string[] = [];
  const read = (key: string, parse: (text: string) => number | null, expected: string): number | null | undefined => {
    const whole = annotation(key);
    const text = whole === undefined ? undefined : valueFor(whole, container);
    if (text === undefined) return undefined;
    const value = parse(text);
    if (value === null) problems.push(`${key}: ${JSON.stringify(text.slice(0, 64))} is not ${expected}`);
    return value;
  };
  const cores = read(CORE_RESIZE_KEY, parseCores, 'a number of cores from 1 to 100');
  const bytes = read(
    MEMORY_RESIZE_KEY,
    parseMemory,
    'a number of blocks of 256 MiB, or of bytes with a unit such as 6Gi',
  );
  if (cores === undefined && bytes === undefined) return null;
  const blocks = Math.ceil((bytes ?? 0) / VCUDA_BLOCK_BYTES);
  return { amounts: larger(requested, { cores: cores ?? 0, memoryBlocks: blocks }), problems };
}

/**
 * Why a container does not have what its annotations ask for, in the words of `pods/resize`: its GPU has no room now
 * (`Deferred`), or never will (`Infeasible`); or it uses more memory than it should keep (`InProgress`).
 */
export type ResizeReason = 'Deferred' | 'Infeasible' | 'InProgress';

/** What the node agent says about a resized container. */
export interface ResizeStatus extends GpuAmounts {
  /** Absent where the container has what its annotations ask for. */
  readonly pending?: {
    readonly reason: ResizeReason;
    readonly message: string;
    readonly asked: GpuAmounts;
  };
}

/** The value of `RESIZE_STATUS_KEY`; equal texts for equal statuses. */
export function encodeResizeStatus(byContainer: ReadonlyMap<string, ResizeStatus>): string {
  const names = [...byContainer.keys()].sort();
  return JSON.stringify(
    Object.fromEntries(
      names.map((name) => {
        const { cores, memoryBlocks, pending } = byContainer.get(name) as ResizeStatus;
        return [name, { cores, memoryBlocks, ...(pending === undefined ? {} : { pending }) }];
      }),
    ),
  );
}

/** The status of one container; null without one, or for a text that no agent wrote. */
export function readResizeStatus(text: string | undefined, container: string): ResizeStatus | null {
  if (text === undefined || text.length > 65_536) return null;
  try {
    const status = fieldOf(JSON.parse(text), container);
    const amounts = amountsOf(status);
    if (amounts === null) return null;
    const pending = fieldOf(status, 'pending');
    const [reason, message, asked] = [
      fieldOf(pending, 'reason'),
      fieldOf(pending, 'message'),
      fieldOf(pending, 'asked'),
    ];
    const wanted = amountsOf(asked);
    if ((reason !== 'Deferred' && reason !== 'Infeasible' && reason !== 'InProgress') || wanted === null)
      return amounts;
    return { ...amounts, pending: { reason, message: typeof message === 'string' ? message : '', asked: wanted } };
  } catch {
    // Not JSON.
    return null;
  }
}

/** The most that a container has or may get: what it requested, what it has, and what its annotations ask for. */
export function chargedAmounts(annotation: Annotation, container: string, requested: GpuAmounts): GpuAmounts {
  const asked = readResize(annotation, container, requested)?.amounts ?? requested;
  return larger(asked, readResizeStatus(annotation(RESIZE_STATUS_KEY), container) ?? requested);
}

/** The status for readers: "60 cores and 6144 MiB", and what is asked for and why that is not so. */
export function resizeInWords({ pending, ...has }: ResizeStatus): string {
  if (pending === undefined) return amountsInWords(has);
  return `${amountsInWords(has)}; ${amountsInWords(pending.asked)} asked for (${pending.reason}): ${pending.message}`;
}

function amountsInWords({ cores, memoryBlocks }: GpuAmounts): string {
  return `${cores} cores and ${(memoryBlocks * VCUDA_BLOCK_BYTES) / 2 ** 20} MiB`;
}

export function sameAmounts(a: GpuAmounts, b: GpuAmounts): boolean {
  return a.cores === b.cores && a.memoryBlocks === b.memoryBlocks;
}

function larger(a: GpuAmounts, b: GpuAmounts): GpuAmounts {
  return { cores: Math.max(a.cores, b.cores), memoryBlocks: Math.max(a.memoryBlocks, b.memoryBlocks) };
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

function amountsOf(value: unknown): GpuAmounts | null {
  const [cores, memoryBlocks] = [fieldOf(value, 'cores'), fieldOf(value, 'memoryBlocks')];
  const isAmount = (amount: unknown): amount is number => Number.isSafeInteger(amount) && (amount as number) >= 0;
  return isAmount(cores) && isAmount(memoryBlocks) ? { cores, memoryBlocks } : null;
}
