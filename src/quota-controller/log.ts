/** The logger of the quota controller; pino's logger satisfies it. */
export interface QuotaLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
