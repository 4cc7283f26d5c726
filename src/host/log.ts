import pino from 'pino';

export type Log = pino.Logger;

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** The daemon's log: one JSON line a record on standard error, so that standard output stays free for answers. */
export function createLog(level: LogLevel): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } }, pino.destination(2));
}

/** A log that says nothing, for tests and short commands. */
export function silentLog(): Log {
  return pino({ level: 'silent' });
}
