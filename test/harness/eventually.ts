/**
 * Waits until `condition` gives a value other than false, null and undefined, and returns it. A generous limit turns a
 * hang into a failure; nothing depends on how fast it comes.
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what = 'the condition',
  limitMs = 15_000,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
}
