/** A log of records with fields; pino's logger satisfies it. */
export interface StructuredLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
