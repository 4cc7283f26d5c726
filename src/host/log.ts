import pino from 'pino';

export type Log = pino.Logger;

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * The daemon's log: one JSON line per record on standard error; standard output stays free for results. Every line
 * names its subject in the same fields: `allocation`, and `namespace`, `pod`, `container`, `podUid`.
 */
export function createLog(level: LogLevel, destination: pino.DestinationStream = pino.destination(2)): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withOwner },
    },
    destination,
  );
}

/** A log without output, for tests and short commands. */
export function silentLog(): Log {
  return pino({ level: 'silent' });
}

interface Owner {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** Callers pass `container`, `owner` or `owners`; of several owners that use GPUs in turn, the last one is logged. */
function withOwner(fields: Record<string, unknown>): Record<string, unknown> {
  const { owner, owners, container, ...rest } = fields;
  const concerned = [owner, Array.isArray(owners) ? (owners as unknown[]).at(-1) : undefined, container].find(isOwner);
  if (concerned === undefined) return fields;
  const { namespace, pod, podUid } = concerned;
  return { ...rest, namespace, pod, container: concerned.container, podUid };
}

function isOwner(value: unknown): value is Owner {
  return typeof value === 'object' && value !== null && 'podUid' in value && 'pod' in value && 'container' in value;
}
