import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { names } from "../../../src/api/index.ts";

/** One kind of request that a component made, however often. */
export interface RightUsed {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  /** `machineconfigpools`, `nodes/status` */
  readonly resource: string;
  readonly name: string;
  readonly namespace: string;
  /** `forbidden`: for want of a right; `refused`: the rights were there, and admission said no. */
  readonly answer: "allowed" | "forbidden" | "refused";
}

/** The fields of an `audit.k8s.io/v1` Event that are read. */
interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly name?: string;
    readonly namespace?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

const prefix = `system:serviceaccount:${names.namespace}:`;
const folder = process.env["MCO_AUDIT_FOLDER"];

/** The different requests of the suite's accounts in an audit log. */
export function rightsUsed(log: string): readonly RightUsed[] {
  const found = new Map<string, RightUsed>();
  for (const line of log.split("\n")) {
    if (!line.includes(prefix)) continue;
    const { verb, user, objectRef, responseStatus, annotations } = JSON.parse(line) as AuditEvent;
    if (!user.username.startsWith(prefix) || objectRef?.resource === undefined) continue;
    const resource =
      objectRef.subresource === undefined ? objectRef.resource : `${objectRef.resource}/${objectRef.subresource}`;
    const used = {
      account: user.username.slice(prefix.length),
      group: objectRef.apiGroup ?? "",
      resource,
      name: objectRef.name ?? "",
      namespace: objectRef.namespace ?? "",
    };
    const answer =
      annotations?.["authorization.k8s.io/decision"] === "forbid"
        ? "forbidden"
        : responseStatus?.code === 403
          ? "refused"
          : "allowed";
    // An apply that made its object needed the right to create as well.
    const verbs = verb === "patch" && responseStatus?.code === 201 ? ["patch", "create"] : [verb];
    for (const each of verbs) {
      const right: RightUsed = { ...used, verb: each, answer };
      found.set(JSON.stringify(right), right);
    }
  }
  return [...found.values()];
}

/**
 * Keeps the requests that a cluster's components sent to a real API server, until the last scenario of the run has
 * ended.
 */
export function keepRightsUsed(directory: string, { refusals }: { readonly refusals: boolean }): void {
  const log = join(directory, "logs", "audit.log");
  if (folder === undefined || !existsSync(log)) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, `${basename(directory)}.json`),
    JSON.stringify(rightsUsed(readFileSync(log, "utf8")).filter(({ answer }) => answer === "allowed" || refusals)),
  );
}

/** The requests of all clusters of this run; the record is deleted. */
export function takeRightsKept(): readonly RightUsed[] {
  if (folder === undefined || !existsSync(folder)) return [];
  const kept = readdirSync(folder).flatMap(
    (name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as RightUsed[],
  );
  rmSync(folder, { recursive: true, force: true });
  return kept;
}
