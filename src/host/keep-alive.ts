const LONG_MS = 1 << 30;

/** Keeps Node running until `work` settles: the agent's timers and sockets do not. */
export async function keptAlive<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, LONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
