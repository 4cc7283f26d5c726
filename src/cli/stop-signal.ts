const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/** Resolves on the first SIGTERM or SIGINT; a second signal has its default action and so ends a stop that hangs. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const entry of SIGNALS) process.off(entry, stop);
      resolve(signal);
    };
    for (const entry of SIGNALS) process.on(entry, stop);
  });
}
