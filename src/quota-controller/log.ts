/** Where the parts of this folder write what operators should know; pino's logger is one. */
export interface QuotaLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
