/** Lists of CPUs and of NUMA nodes in Linux's format: `0-3,8`. Pure. */

/** No machine has more; a list with a higher number is invalid. */
const CPU_LIMIT = 65_536;

/** Null for invalid text. */
export function parseCpuList(text: string): ReadonlySet<number> | null {
  const numbers = new Set<number>();
  const trimmed = text.trim();
  if (trimmed === '') return numbers;
  for (const part of trimmed.split(',')) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (match === null) return null;
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (last < first || last >= CPU_LIMIT) return null;
    for (let number = first; number <= last; number += 1) numbers.add(number);
  }
  return numbers;
}

export function formatCpuList(numbers: ReadonlySet<number>): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && range[1] === number - 1) range[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}
