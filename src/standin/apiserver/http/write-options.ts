import { pushAll } from "../../../api/schema/push-all.ts";
import type { HttpRequest } from "../../../ports/http.ts";
import { mediaType } from "./request-body.ts";
import { badRequest, Refusal, type StatusCause } from "../schema/status.ts";

/** How a write is to be done: the query of POST, PUT and PATCH. */
export interface WriteOptions {
  /** In whose name fields are owned. */
  readonly manager: string;
  readonly dryRun: boolean;
  readonly fieldValidation: "Strict" | "Warn" | "Ignore";
  readonly force: boolean;
}

export function readWriteOptions(
  request: HttpRequest,
  query: URLSearchParams,
  kind: "CreateOptions" | "UpdateOptions" | "PatchOptions",
): WriteOptions | Refusal {
  const apply = mediaType(request) === "application/apply-patch+yaml";
  const manager = query.get("fieldManager") ?? "";
  const problems: StatusCause[] = [];
  if (apply && manager === "")
    problems.push({
      reason: "FieldValueRequired",
      message: "Required value: is required for apply patch",
      field: "fieldManager",
    });
  if (kind === "PatchOptions" && !apply && query.has("force"))
    problems.push({
      reason: "FieldValueForbidden",
      message: "Forbidden: may not be specified for non-apply patch",
      field: "force",
    });
  if (manager.length > 128)
    problems.push({
      reason: "FieldValueTooLong",
      message: "Too long: may not be more than 128 bytes",
      field: "fieldManager",
    });
  const dryRun = query.getAll("dryRun");
  pushAll(problems, dryRunProblems(dryRun));
  const fieldValidation = query.get("fieldValidation") ?? "Warn";
  if (
    fieldValidation !== "Strict" &&
    fieldValidation !== "Warn" &&
    fieldValidation !== "Ignore" &&
    fieldValidation !== ""
  ) {
    const refused: StatusCause = {
      reason: "FieldValueNotSupported",
      message: `Unsupported value: ${JSON.stringify(fieldValidation)}: supported values: "", "Ignore", "Strict", "Warn"`,
      field: "fieldValidation",
    };
    return invalidOptions(kind, [...problems, refused]);
  }
  if (problems.length > 0) return invalidOptions(kind, problems);
  return {
    // `k8s.io/apiserver pkg/endpoints/handlers/create.go (master)` managerOrUserAgent
    manager:
      manager === "" ? ((request.headers["user-agent"] ?? "").split("/")[0] ?? "").slice(0, 128) || "unknown" : manager,
    dryRun: dryRun.length > 0,
    fieldValidation: fieldValidation === "" ? "Warn" : fieldValidation,
    force: query.get("force") === "true" || query.get("force") === "1",
  };
}

function dryRunProblems(values: readonly unknown[]): readonly StatusCause[] {
  if (values.every((value) => value === "All")) return [];
  return [
    {
      reason: "FieldValueNotSupported",
      message: `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`,
      field: "dryRun",
    },
  ];
}

/** 422 about a query parameter. */
export function invalidOption(kind: string, field: string, message: string, reason: string): Refusal {
  return invalidOptions(kind, [{ reason, message, field }]);
}

function invalidOptions(kind: string, causes: readonly StatusCause[]): Refusal {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  return new Refusal(
    422,
    "Invalid",
    `${kind}.meta.k8s.io "" is invalid: ${texts.length === 1 ? (texts[0] ?? "") : `[${texts.join(", ")}]`}`,
    { group: "meta.k8s.io", kind, causes },
  );
}

/** How a deletion is to be done. */
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: "Background" | "Foreground" | "Orphan" | undefined;
  /** Requested in the old way (`orphanDependents: false`): a deletion that has to wait is then answered by 202. */
  readonly cascades: boolean;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

/** Deletion options without anything asked for. */
export const plainDelete: DeleteOptions = {
  dryRun: false,
  gracePeriodSeconds: undefined,
  propagation: undefined,
  cascades: false,
  uid: undefined,
  resourceVersion: undefined,
};

/** From the body (`DeleteOptions`) or, without one, from the query. */
export function readDeleteOptions(
  body: Readonly<Record<string, unknown>> | undefined,
  query: URLSearchParams,
): DeleteOptions | Refusal {
  const preconditions = body?.["preconditions"];
  const precondition = (field: "uid" | "resourceVersion"): string | undefined => {
    if (typeof preconditions !== "object" || preconditions === null) return undefined;
    const value = (preconditions as Readonly<Record<string, unknown>>)[field];
    return typeof value === "string" ? value : undefined;
  };
  const orphan = body?.["orphanDependents"];
  const asked = body?.["propagationPolicy"] ?? query.get("propagationPolicy") ?? undefined;
  const problems: StatusCause[] = [];
  if (typeof orphan === "boolean" && asked !== undefined) {
    problems.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${JSON.stringify(asked)}: orphanDependents and deletionPropagation cannot be both set`,
      field: "propagationPolicy",
    });
  }
  const propagation = asked === "Background" || asked === "Foreground" || asked === "Orphan" ? asked : undefined;
  if (asked !== propagation) {
    problems.push({
      reason: "FieldValueNotSupported",
      message: `Unsupported value: ${JSON.stringify(asked)}: supported values: "Foreground", "Background", "Orphan", "nil"`,
      field: "propagationPolicy",
    });
  }
  const given = body?.["dryRun"];
  const dryRun: readonly unknown[] = Array.isArray(given) ? given : query.getAll("dryRun");
  pushAll(problems, dryRunProblems(dryRun));
  if (problems.length > 0) return invalidOptions("DeleteOptions", problems);
  const grace =
    body?.["gracePeriodSeconds"] ??
    (query.has("gracePeriodSeconds") ? Number(query.get("gracePeriodSeconds")) : undefined);
  if (grace !== undefined && grace !== null && (typeof grace !== "number" || !Number.isInteger(grace)))
    return badRequest(
      query.has("gracePeriodSeconds")
        ? `strconv.ParseInt: parsing ${JSON.stringify(query.get("gracePeriodSeconds"))}: invalid syntax`
        : "gracePeriodSeconds must be an integer",
    );
  return {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: typeof grace === "number" ? grace : undefined,
    propagation: propagation ?? (orphan === true ? "Orphan" : orphan === false ? "Background" : undefined),
    cascades: orphan === false,
    uid: precondition("uid"),
    resourceVersion: precondition("resourceVersion"),
  };
}
