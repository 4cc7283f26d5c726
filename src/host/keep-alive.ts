const LONG_MS = 1 << 30;

/** Keeps Node alive until `work` settles: timers and sockets of our parts do not. */
export async function keptAlive<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, LONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
