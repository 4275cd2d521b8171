import { pino } from "pino";
import type { LogFields, Logger } from "../logger.ts";

export interface JsonLoggerOptions {
  readonly component: string;
  readonly node?: string;
  readonly level?: "debug" | "info" | "warn" | "error";
  /** `true`: one readable line each, for terminals. */
  readonly pretty?: boolean;
}

/** Logs to stderr, one JSON object a line: `{t, level, msg, component, node?, …}`. */
export function jsonLogger(options: JsonLoggerOptions): Logger {
  const stream = options.pretty === true ? { write: (line: string) => void process.stderr.write(prettyLine(line)) } : pino.destination({ fd: 2, sync: true });
  const base = pino(
    {
      level: options.level ?? "info",
      base: { component: options.component, ...(options.node === undefined ? {} : { node: options.node }) },
      messageKey: "msg",
      timestamp: () => `,"t":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return wrap(base);
}

interface Writer {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Writer;
}

function wrap(writer: Writer): Logger {
  return {
    debug: (fields, message) => writer.debug(plain(fields), message),
    info: (fields, message) => writer.info(plain(fields), message),
    warn: (fields, message) => writer.warn(plain(fields), message),
    error: (fields, message) => writer.error(plain(fields), message),
    child: (fields) => wrap(writer.child(plain(fields))),
  };
}

/** Errors become text with their causes; a log line is no place for object graphs. */
function plain(fields: LogFields): LogFields {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? errorText(value) : value]));
}

export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = `${error.name}: ${error.message}`;
  return error.cause === undefined ? own : `${own} ← ${errorText(error.cause)}`;
}

function prettyLine(line: string): string {
  const { t, level, msg, component, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${String(t).slice(11, 23)} ${String(level).padEnd(5)} ${String(component)}: ${String(msg)} ${fields.join(" ")}\n`;
}
