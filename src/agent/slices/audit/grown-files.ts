import { FileSizes, type SizedFile } from '../../../host/file-sizes.js';
import { activityHasGrown } from '../usage/activity-files.js';
import type { Slice } from '../slice.js';
import { usageHasGrown } from '../usage/usage-reader.js';

/** Stands for a file that is not open. */
const NO_FD = -1;

/** Finds slices with a usage file or an activity file that has grown, with one system call per file. */
export class GrownFiles {
  #usage = new FileSizes([]);
  #activity = new FileSizes([]);

  /** Checks the usage files, with `everything` also the activity files. */
  find(slices: Iterable<Slice>, everything: boolean): ReadonlySet<Slice> {
    const all = [...slices];
    const grown = new Set<Slice>();
    this.#usage = readSizes(
      this.#usage,
      all.map(({ usage }) => (usage.ok ? (usage.reader.fd ?? NO_FD) : NO_FD)),
    );
    addGrown(grown, all, this.#usage, usageHasGrown);
    if (!everything) return grown;
    this.#activity = readSizes(
      this.#activity,
      all.map(({ activityPath }) => activityPath),
    );
    addGrown(grown, all, this.#activity, activityHasGrown);
    return grown;
  }
}

/** Reads the sizes of these files: of `known` if that has the same files. */
function readSizes(known: FileSizes, files: readonly SizedFile[]): FileSizes {
  const sizes = known.isOf(files) ? known : new FileSizes(files);
  sizes.read();
  return sizes;
}

function addGrown(
  grown: Set<Slice>,
  slices: readonly Slice[],
  sizes: FileSizes,
  hasGrown: (size: number, diskBytes: number) => boolean,
): void {
  for (const [at, slice] of slices.entries()) {
    const [size, diskBytes] = [sizes.size(at), sizes.diskBytes(at)];
    if (size !== null && diskBytes !== null && hasGrown(size, diskBytes)) grown.add(slice);
  }
}
