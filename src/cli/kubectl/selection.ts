/**
 * The items with these names, or all items without names. Throws if an item is missing: `absence` makes the message
 * from the missing names.
 */
export function selection<T>(
  items: readonly T[],
  names: readonly string[],
  nameOf: (item: T) => string,
  absence: (missing: string) => string,
): readonly T[] {
  const missing = names.filter((name) => !items.some((item) => nameOf(item) === name));
  if (missing.length > 0) throw new Error(absence(missing.join(', ')));
  return items.filter((item) => names.length === 0 || names.includes(nameOf(item)));
}
