import { hash, names } from './format.js';

/** The colours of the style sheet for slices and pods. */
const COLOURS = 8;
/** Each colour exists plain, striped and hatched. */
const TEXTURES = 3;

/**
 * Classes for colour and texture, by id. Slices of one GPU get different marks as long as there are enough marks.
 * Each gets the colour that its name selects, unless an earlier slice of the GPU has it.
 *
 * `sharers`: { id, name, gpus }, the oldest first.
 */
export function marks(sharers) {
  const uses = new Map();
  const chosen = new Map();
  for (const { id, name, gpus } of sharers) {
    const usesOf = (mark) => gpus.reduce((sum, gpu) => sum + (uses.get(`${mark} ${gpu}`) ?? 0), 0);
    const mark = preference(name).reduce((best, next) => (usesOf(next) < usesOf(best) ? next : best));
    for (const gpu of gpus) uses.set(`${mark} ${gpu}`, usesOf(mark) + 1);
    chosen.set(id, `h${mark % COLOURS} x${Math.floor(mark / COLOURS)}`);
  }
  return chosen;
}

/** The marks of allocations: all containers of a pod prefer the same colour. */
export function colours(allocations) {
  const byAge = [...allocations].sort((a, b) => a.allocatedAtMs - b.allocatedAtMs || (a.id < b.id ? -1 : 1));
  return marks(
    byAge.map((allocation) => ({
      id: allocation.id,
      name: allocation.owners.length === 0 ? allocation.id : podName(names(allocation)),
      gpus: [...new Set(allocation.slices.map(({ gpuUuid }) => gpuUuid))],
    })),
  );
}

function podName({ namespace, pod }) {
  return `${namespace}/${pod}`;
}

/** All marks in the order in which this name takes them: plain colours first. */
function preference(name) {
  const first = hash(name);
  return Array.from(
    { length: COLOURS * TEXTURES },
    (_, at) => Math.floor(at / COLOURS) * COLOURS + ((first + at) % COLOURS),
  );
}
