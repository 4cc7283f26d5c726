import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';

/** As often as the node's monitor of HAMi looks at all containers. */
const PERIOD_MS = 5_000;
/** HAMi-core writes one byte behind its shared region, whose size is a multiple of eight. */
const UNIT_BYTES = 8;
/** Before the end of the region: utilization_switch, recent_kernel and priority, of four bytes each. */
const FIELDS_BEFORE_END = 52;

interface Region {
  readonly fd: number;
  readonly at: number;
  utilizationSwitch: number;
  recentKernel: number;
  readonly priority: number;
}

/**
 * HAMi's monitor, as far as priority goes: it ages the last kernel of each container of a GPU, stops those of low
 * priority (1) while one of high priority (0) works, and lifts the limit of a container that has the GPU for itself.
 */
export class HamiMonitor {
  readonly #timer: NodeJS.Timeout;

  /** `files`: the shared regions of the containers of one GPU. */
  constructor(files: readonly string[]) {
    this.#timer = setInterval(() => observe(files), PERIOD_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function observe(files: readonly string[]): void {
  const regions = files.flatMap((file) => openRegion(file));
  try {
    const active = [0, 0];
    for (const region of regions) {
      if (region.recentKernel <= 0) continue;
      region.recentKernel -= 1;
      if (region.recentKernel > 0) active[region.priority] = (active[region.priority] ?? 0) + 1;
    }
    for (const region of regions) {
      const hasHigher = active.slice(0, region.priority).some((count) => count > 0);
      if (hasHigher) region.recentKernel = -1;
      else region.recentKernel = Math.max(0, region.recentKernel);
      region.utilizationSwitch = hasHigher || (active[region.priority] ?? 0) > 1 ? 1 : 0;
      const fields = Buffer.alloc(8);
      fields.writeInt32LE(region.utilizationSwitch, 0);
      fields.writeInt32LE(region.recentKernel, 4);
      writeSync(region.fd, fields, 0, fields.length, region.at);
    }
  } finally {
    for (const { fd } of regions) closeSync(fd);
  }
}

/** None while the container's first program has not made its region. */
function openRegion(file: string): Region[] {
  let fd: number;
  try {
    fd = openSync(file, 'r+');
  } catch {
    return [];
  }
  const { size } = fstatSync(fd);
  const at = size - (size % UNIT_BYTES) - FIELDS_BEFORE_END;
  const fields = Buffer.alloc(12);
  if (at < 0 || readSync(fd, fields, 0, fields.length, at) !== fields.length) {
    closeSync(fd);
    return [];
  }
  const [utilizationSwitch, recentKernel, priority] = [0, 4, 8].map((offset) => fields.readInt32LE(offset)) as [
    number,
    number,
    number,
  ];
  if (priority !== 0 && priority !== 1) throw new Error(`${file}: expected the priority 0 or 1, found ${priority}`);
  return [{ fd, at, utilizationSwitch, recentKernel, priority }];
}
