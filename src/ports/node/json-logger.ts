import { pino } from "pino";
import type { LogFields, Logger } from "../logger.ts";

type LogLevel = "debug" | "info" | "warn" | "error";

export interface JsonLoggerOptions {
  readonly component: string;
  readonly node?: string;
  /** The minimum level; a function is evaluated for every line. */
  readonly level?: LogLevel | (() => LogLevel);
  /** `true`: one readable line each, for terminals. */
  readonly pretty?: boolean;
  /** Redacts a text; if absent, texts are written unchanged. */
  readonly redact?: (text: string) => string;
}

/** Logs to stderr, one JSON object a line: `{t, level, msg, component, node?, …}`. */
export function jsonLogger(options: JsonLoggerOptions): Logger {
  const stream =
    options.pretty === true
      ? { write: (line: string) => void process.stderr.write(prettyLine(line)) }
      : pino.destination({ fd: 2, sync: true });
  const base = pino(
    {
      level: typeof options.level === "function" ? "debug" : (options.level ?? "info"),
      base: { component: options.component, ...(options.node === undefined ? {} : { node: options.node }) },
      messageKey: "msg",
      timestamp: () => `,"t":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  const { level } = options;
  return wrap(
    base,
    typeof level === "function" ? (of) => order.indexOf(of) >= order.indexOf(level()) : () => true,
    options.redact ?? ((text) => text),
  );
}

const order: readonly LogLevel[] = ["debug", "info", "warn", "error"];

interface Writer {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Writer;
}

function wrap(writer: Writer, isWanted: (level: LogLevel) => boolean, redact: (text: string) => string): Logger {
  const line = (level: LogLevel) => (fields: LogFields, message: string) => {
    if (isWanted(level)) writer[level](plain(fields, redact), redact(message));
  };
  return {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    child: (fields) => wrap(writer.child(plain(fields, redact)), isWanted, redact),
  };
}

/** Errors become text with their causes; log lines do not hold object graphs. */
function plain(fields: LogFields, redact: (text: string) => string): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      redacted(value instanceof Error ? errorText(value) : value, redact),
    ]),
  );
}

/** Deeper than any log line of ours: bounds circular references. */
const deepest = 8;

function redacted(value: unknown, redact: (text: string) => string, depth = 0): unknown {
  if (typeof value === "string") return redact(value);
  if (typeof value !== "object" || value === null || depth > deepest || "toJSON" in value) return value;
  if (Array.isArray(value)) return value.map((each) => redacted(each, redact, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, redacted(each, redact, depth + 1)]));
}

export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = `${error.name}: ${error.message}`;
  return error.cause === undefined ? own : `${own} ← ${errorText(error.cause)}`;
}

function prettyLine(line: string): string {
  const { t, level, msg, component, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${String(t).slice(11, 23)} ${String(level).padEnd(5)} ${String(component)}: ${String(msg)} ${fields.join(" ")}\n`;
}
