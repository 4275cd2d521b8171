export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Diagnostics for developers, one JSON object per line: a constant message and variable fields. Users get conditions,
 * events and the books instead. Never log a secret.
 */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger;
}

/** Drops everything: for tests that check results only. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child() {
    return silentLogger;
  },
};
