/** Values by a key of theirs, in their order. */
export function grouped<T>(all: readonly T[], by: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) {
    const known = groups.get(by(each));
    if (known === undefined) groups.set(by(each), [each]);
    else known.push(each);
  }
  return groups;
}
