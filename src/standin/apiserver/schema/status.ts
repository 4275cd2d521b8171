import { andMore } from "../../../core/text/list-text.ts";
import type { HttpResponse } from "../../../ports/http.ts";
import type { FieldError, Served } from "./contract.ts";

/**
 * The error (and, for deletions, success) body of Kubernetes' API: `k8s.io/apimachinery pkg/apis/meta/v1/types.go
 * (master)`.
 */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Record<string, never>;
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code?: number;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** A refused request as a value: the answer to the caller. */
export class Refusal {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      ...(reason === "" ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    };
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  response(): HttpResponse {
    const retry = this.status.details?.retryAfterSeconds;
    return jsonResponse(this.code, this.status, retry === undefined ? {} : { "retry-after": String(retry) });
  }
}

export function jsonResponse(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return { status, headers: { "content-type": "application/json", ...headers }, body: `${JSON.stringify(body)}\n` };
}

/** Whose resource a refusal speaks of. */
export interface Named {
  readonly group: string;
  readonly plural: string;
}

/** `deployments.apps`; the core group has no suffix. */
export function groupResource({ group, plural }: Named): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function details(resource: Named, name: string): StatusDetails {
  return {
    ...(name === "" ? {} : { name }),
    ...(resource.group === "" ? {} : { group: resource.group }),
    kind: resource.plural,
  };
}

/** An object that is none of its kind: a body is refused as a whole, a patch by the value that it makes. */
export class UnreadableObject extends Refusal {
  readonly problem: string;

  constructor(given: { readonly kind: string; readonly version: string }, as: string, problem: string) {
    super(
      400,
      "BadRequest",
      `${given.kind} in version ${JSON.stringify(given.version)} cannot be handled as a ${as}: ${problem}`,
    );
    this.problem = problem;
  }
}

export function badRequest(message: string): Refusal {
  return new Refusal(400, "BadRequest", message);
}

export function unauthorized(): Refusal {
  return new Refusal(401, "Unauthorized", "Unauthorized");
}

/** `pods "x" is forbidden: <why>` */
export function forbidden(resource: Named, name: string, why: string, causes: readonly StatusCause[] = []): Refusal {
  const subject = name === "" ? groupResource(resource) : `${groupResource(resource)} "${name}"`;
  return new Refusal(403, "Forbidden", `${subject} is forbidden: ${why}`, {
    ...details(resource, name),
    ...(causes.length > 0 ? { causes } : {}),
  });
}

/** Errors that the real server does not foresee, with its literal answer. */
export function unforeseen(message: string): Refusal {
  return new Refusal(500, "", message);
}

export function notFound(resource: Named, name: string): Refusal {
  return new Refusal(404, "NotFound", `${groupResource(resource)} "${name}" not found`, details(resource, name));
}

/** The answer for unhandled paths: the text of Go's mux, not a Status. */
export function pageNotFound(): HttpResponse {
  return {
    status: 404,
    headers: { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
    body: "404 page not found\n",
  };
}

/** No such kind in a group that is served. */
export function notServed(): Refusal {
  return new Refusal(404, "NotFound", "the server could not find the requested resource", {});
}

export function methodNotAllowed(message = "the server does not allow this method on the requested resource"): Refusal {
  return new Refusal(405, "MethodNotAllowed", message, {});
}

export function alreadyExists(resource: Named, name: string, state: "stays" | "goes" = "stays"): Refusal {
  return new Refusal(
    409,
    "AlreadyExists",
    `${state === "goes" ? "object is being deleted: " : ""}${groupResource(resource)} "${name}" already exists`,
    details(resource, name),
  );
}

export function conflict(
  resource: Named,
  name: string,
  why = "the object has been modified; please apply your changes to the latest version and try again",
): Refusal {
  return new Refusal(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${groupResource(resource)} "${name}": ${why}`,
    details(resource, name),
  );
}

/** A resourceVersion that the history no longer reaches back to. */
export function expired(message: string): Refusal {
  return new Refusal(410, "Expired", message);
}

export function tooLarge(limitBytes: number): Refusal {
  return new Refusal(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limitBytes}`);
}

export function notAcceptable(accepted: readonly string[]): Refusal {
  return new Refusal(
    406,
    "NotAcceptable",
    `406: Not Acceptable\n\nAvailable representations: ${accepted.join(", ")}`,
    {},
  );
}

export function unsupportedMediaType(accepted: readonly string[]): Refusal {
  return new Refusal(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  );
}

/** Errors that an answer lists, and characters of all of them: many may be below one long name. */
const mostErrors = { count: 100, characters: 128 * 1024 } as const;

/** The first errors, at least one; of long texts the beginning. */
function reportedOf(errors: readonly FieldError[]): readonly FieldError[] {
  const reported: FieldError[] = [];
  let left: number = mostErrors.characters;
  for (const { reason, message, field } of errors.slice(0, mostErrors.count)) {
    if (left <= 0) break;
    const clip = (text: string) => (text.length <= left ? text : `${text.slice(0, left)}…`);
    reported.push({ reason, field: clip(field), message: clip(message) });
    left -= field.length + message.length;
  }
  return reported;
}

/** `Pod "x" is invalid: spec.containers: Required value`; several reasons are in brackets. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): Refusal {
  const subject = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  const reported = reportedOf(errors);
  const left = errors.length - reported.length;
  const texts = [
    ...new Set(reported.map((error) => (error.field === "" ? error.message : `${error.field}: ${error.message}`))),
    ...(left === 0 ? [] : [andMore(left)]),
  ];
  const all = texts.length === 1 ? (texts[0] ?? "") : `[${texts.join(", ")}]`;
  return new Refusal(422, "Invalid", `${subject} "${name}" is invalid: ${all}`, {
    ...(name === "" ? {} : { name }),
    ...(kind.group === "" ? {} : { group: kind.group }),
    ...(kind.kind === "" ? {} : { kind: kind.kind }),
    causes: reported.map(({ reason, message, field }) => ({ reason, message, field })),
  });
}

export function tooManyRequests(
  message: string,
  retryAfterSeconds: number,
  causes: readonly StatusCause[] = [],
): Refusal {
  return new Refusal(429, "TooManyRequests", message, {
    ...(causes.length > 0 ? { causes } : {}),
    ...(retryAfterSeconds > 0 ? { retryAfterSeconds } : {}),
  });
}

export function internalError(message: string): Refusal {
  return new Refusal(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/** A resourceVersion of the future. Clients know it by its cause. */
export function tooLargeRevision(asked: number, current: number): Refusal {
  return new Refusal(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

/** Answer of a deletion that is complete. */
export function success(resource: Named, name: string, uid: string | undefined): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { ...details(resource, name), ...(uid === undefined ? {} : { uid }) },
  };
}

/** 403 for a new object in a namespace that is going away. */
export function namespaceTerminating(served: Served, name: string, namespace: string): Refusal {
  return forbidden(
    served.definition,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );
}
