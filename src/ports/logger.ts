export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Diagnostics for us, one JSON object a line: a constant message, with what varies beside it as fields.
 * People are told through conditions, events and the books instead. Never pass a secret.
 */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger;
}

/** Drops everything: for tests that look at results. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child() {
    return silentLogger;
  },
};
