const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/**
 * Resolves on the first SIGTERM or SIGINT; from then on the default applies, so that a second one ends a stuck stop.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const entry of SIGNALS) process.off(entry, stop);
      resolve(signal);
    };
    for (const entry of SIGNALS) process.on(entry, stop);
  });
}
