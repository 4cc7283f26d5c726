import { COLOURS, hash, names } from './format.js';

/** Each colour of the style sheet is there plain, striped and hatched. */
const TEXTURES = 3;

/**
 * Classes for colour and texture, by allocation. Slices of one GPU differ while it has at most as many as there are
 * marks. A pod keeps the colour that its name chooses unless an earlier slice of the GPU has it.
 */
export function colours(allocations) {
  const uses = new Map();
  const chosen = new Map();
  const byAge = [...allocations].sort((a, b) => a.allocatedAtMs - b.allocatedAtMs || (a.id < b.id ? -1 : 1));
  for (const allocation of byAge) {
    const gpus = [...new Set(allocation.slices.map(({ gpuUuid }) => gpuUuid))];
    const usesOf = (mark) => gpus.reduce((sum, gpu) => sum + (uses.get(`${mark} ${gpu}`) ?? 0), 0);
    const mark = preference(allocation).reduce((best, next) => (usesOf(next) < usesOf(best) ? next : best));
    for (const gpu of gpus) uses.set(`${mark} ${gpu}`, usesOf(mark) + 1);
    chosen.set(allocation.id, `h${mark % COLOURS} x${Math.floor(mark / COLOURS)}`);
  }
  return chosen;
}

/** All marks in the order in which this allocation takes them: plain colours first. */
function preference(allocation) {
  const { namespace, pod } = names(allocation);
  const first = hash(allocation.owners.length === 0 ? allocation.id : `${namespace}/${pod}`);
  return Array.from(
    { length: COLOURS * TEXTURES },
    (_, at) => Math.floor(at / COLOURS) * COLOURS + ((first + at) % COLOURS),
  );
}
