import type { HttpRequest } from "../ports/http.ts";
import { badRequest, Refusal } from "./status.ts";

/** How a write is to be done: the query of POST, PUT and PATCH. */
export interface WriteOptions {
  /** In whose name fields are owned. */
  readonly manager: string;
  readonly dryRun: boolean;
  readonly fieldValidation: "Strict" | "Warn" | "Ignore";
  readonly force: boolean;
}

export function readWriteOptions(request: HttpRequest, query: URLSearchParams, kind: "CreateOptions" | "UpdateOptions" | "PatchOptions"): WriteOptions | Refusal {
  const dryRun = readDryRun(query.getAll("dryRun"), kind);
  if (dryRun instanceof Refusal) return dryRun;
  const fieldValidation = query.get("fieldValidation") ?? "Warn";
  if (fieldValidation !== "Strict" && fieldValidation !== "Warn" && fieldValidation !== "Ignore" && fieldValidation !== "") {
    return invalidOption(kind, "fieldValidation", `Unsupported value: ${JSON.stringify(fieldValidation)}: supported values: "", "Ignore", "Strict", "Warn"`, "FieldValueNotSupported");
  }
  const manager = query.get("fieldManager") ?? "";
  if (manager.length > 128) return invalidOption(kind, "fieldManager", "Too long: may not be more than 128 bytes", "FieldValueTooLong");
  const force = query.get("force");
  const applies = (request.headers["content-type"] ?? "").startsWith("application/apply-patch");
  if (kind === "PatchOptions" && force !== null && !applies) return invalidOption(kind, "force", "Forbidden: may not be specified for non-apply patch", "FieldValueForbidden");
  return {
    // `k8s.io/apiserver pkg/endpoints/handlers/create.go (master)` managerOrUserAgent
    manager: manager === "" ? ((request.headers["user-agent"] ?? "").split("/")[0] ?? "").slice(0, 128) || "unknown" : manager,
    dryRun,
    fieldValidation: fieldValidation === "" ? "Warn" : fieldValidation,
    force: force === "true" || force === "1",
  };
}

export function readDryRun(values: readonly unknown[], kind: string): boolean | Refusal {
  if (values.some((value) => value !== "All")) return invalidOption(kind, "dryRun", `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`, "FieldValueNotSupported");
  return values.length > 0;
}

/** 422 about a query parameter. */
export function invalidOption(kind: string, field: string, message: string, reason: string): Refusal {
  return new Refusal(422, "Invalid", `${kind}.meta.k8s.io "" is invalid: ${field}: ${message}`, { group: "meta.k8s.io", kind, causes: [{ reason, message, field }] });
}

/** How a deletion is to be done. */
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: "Background" | "Foreground" | "Orphan" | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

/** Deletion options without anything asked for. */
export const plainDelete: DeleteOptions = { dryRun: false, gracePeriodSeconds: undefined, propagation: undefined, uid: undefined, resourceVersion: undefined };

/** From the body (`DeleteOptions`) or, without one, from the query. */
export function readDeleteOptions(body: Readonly<Record<string, unknown>> | undefined, query: URLSearchParams): DeleteOptions | Refusal {
  const preconditions = body?.["preconditions"];
  const precondition = (field: "uid" | "resourceVersion"): string | undefined => {
    if (typeof preconditions !== "object" || preconditions === null) return undefined;
    const value = (preconditions as Readonly<Record<string, unknown>>)[field];
    return typeof value === "string" ? value : undefined;
  };
  const given = body?.["dryRun"];
  const dryRun = readDryRun(Array.isArray(given) ? given : query.getAll("dryRun"), "DeleteOptions");
  if (dryRun instanceof Refusal) return dryRun;
  const grace = body?.["gracePeriodSeconds"] ?? (query.has("gracePeriodSeconds") ? Number(query.get("gracePeriodSeconds")) : undefined);
  if (grace !== undefined && grace !== null && (typeof grace !== "number" || !Number.isInteger(grace))) return badRequest("gracePeriodSeconds must be an integer");
  const propagation = body?.["propagationPolicy"] ?? query.get("propagationPolicy") ?? undefined;
  if (propagation !== undefined && propagation !== "Background" && propagation !== "Foreground" && propagation !== "Orphan") {
    return invalidOption("DeleteOptions", "propagationPolicy", `Unsupported value: ${JSON.stringify(propagation)}: supported values: "Background", "Foreground", "Orphan", "nil"`, "FieldValueNotSupported");
  }
  const orphan = body?.["orphanDependents"];
  return {
    dryRun,
    gracePeriodSeconds: typeof grace === "number" ? Math.max(grace, 0) : undefined,
    propagation: propagation ?? (orphan === true ? "Orphan" : orphan === false ? "Background" : undefined),
    uid: precondition("uid"),
    resourceVersion: precondition("resourceVersion"),
  };
}
