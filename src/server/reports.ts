/**
 * Everything that the config server reports, as a function for each happening: its lines in books and all of their texts.
 * Callers give the facts, and pass the result to `report`.
 */
import type { JournalEntryOf } from "../api/books/report-table.ts";
import type { ReportedLine } from "../api/books/reports.ts";
import { defined } from "../api/schema/defined.ts";
import { serverUpLine } from "../core/operator/bootstrap-journal.ts";
import type { Happening } from "../kube/report.ts";
import type { RequestOutcome } from "./answer-request.ts";

/** The reporting process: its life is a chapter of a cluster's book, while all programs of a bootstrap share one. */
export interface ReportingServer {
  readonly run: string;
  readonly chapter: "Server" | "Bootstrap";
}

type Facts = NonNullable<JournalEntryOf<"cluster">["data"]>;

const inServer = (identity: string) => ({ book: "cluster", run: identity }) as const;
const inStart = (identity: string) => ({ ...inServer(identity), chapter: "Server", path: "Start" }) as const;

/** @param certificateEnds milliseconds since the epoch; `undefined`: it is not known. */
export const serverStarted = (
  identity: string,
  { version, port, access }: { readonly version: string; readonly port: number; readonly access: string },
  certificateEnds: number | undefined,
): Happening => ({
  ...inStart(identity),
  mark: "begin",
  reason: "Started",
  message: `${identity}, version ${version}, port ${port}, access ${access}`,
  data: {
    access,
    port,
    ...(certificateEnds === undefined ? {} : { until: new Date(certificateEnds).toISOString() }),
  },
});

export const bootstrapServerStarted = (port: number, access: string): ReportedLine => ({
  book: "cluster",
  ...serverUpLine(port, access),
});

export const serverStopped = (identity: string): Happening => ({
  ...inStart(identity),
  mark: "end",
  reason: "Stopped",
  message: `${identity} ended`,
});

/** @param until its end, as ISO 8601. */
export const certificateNoted = (
  identity: string,
  reason: "CertificateRotated" | "CertExpiring",
  message: string,
  until: string,
): Happening => ({ ...inServer(identity), mark: "note", reason, message, data: { until } });

const inServed = ({ chapter, run }: ReportingServer, pool: string) => {
  const line = { book: "cluster", path: `Served/${pool}` } as const;
  return chapter === "Server"
    ? ({ ...line, chapter, run, mark: "note" } as const)
    : ({ ...line, chapter, mark: "end" } as const);
};

/** An answer with a configuration. */
type ServedAnswer = Pick<
  RequestOutcome,
  "requester" | "pool" | "config" | "version" | "sizeBytes" | "durationMs" | "by" | "node" | "ignition"
>;

const dataOf = ({
  requester,
  pool,
  config,
  version,
  sizeBytes,
  durationMs,
  by,
  node,
  ignition,
}: ServedAnswer): Facts => ({
  requester,
  pool,
  config,
  version,
  sizeBytes,
  durationMs,
  by,
  ...(node === "" ? {} : { node }),
  ...defined({ ignition }),
});

export const configServed = (server: ReportingServer, served: ServedAnswer): Happening => {
  const { requester, pool, config, version, sizeBytes, durationMs, node, ignition } = served;
  return {
    ...inServed(server, pool),
    reason: "Served",
    message: `${node === "" ? requester : node} was given ${config} of the pool ${pool} for Ignition ${version}: ${sizeBytes} bytes in ${durationMs} ms${ignition === undefined ? "" : `; its boot image has Ignition ${ignition}, as it says`}`,
    data: dataOf(served),
  };
};

/** Begins the book of a machine that has no Node yet, and whose name its token gives. */
export const firstConfigServed = (served: ServedAnswer): Happening => ({
  book: `node/${served.node}`,
  chapter: "Bootstrap",
  path: "Served",
  mark: "end",
  reason: "Served",
  message: `the bootstrap gave the machine ${served.config} of the pool ${served.pool}`,
  data: dataOf(served),
});

/** @param count of answers within a minute that have no line of their own. */
export const moreServed = (
  server: ReportingServer,
  { pool, config }: Pick<ServedAnswer, "pool" | "config">,
  count: number,
): Happening => ({
  ...inServed(server, pool),
  reason: "Served",
  message: `${count} more requests for the pool ${pool} were answered within a minute`,
  data: { pool, config, machines: count },
});

/** @param pool `-`: a pool that there is not. */
export const requestsRefused = (run: string, pool: string, message: string, data: Facts): Happening => ({
  ...inServer(run),
  path: `Served/${pool}`,
  mark: "note",
  reason: "ServeRefused",
  message,
  data,
});
