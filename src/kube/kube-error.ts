import { McoError } from "../api/errors.ts";

/** A `Status` answer of the API server (Kubernetes meta/v1 Status). */
export interface KubeStatus {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly { reason?: string; message?: string; field?: string }[];
  };
}

/** A refusal by the API server. */
export class KubeError extends McoError {
  readonly httpStatus: number;
  readonly status: KubeStatus;
  /** When to retry, as requested by the server; `undefined` if it did not say. */
  readonly retryAfterMs: number | undefined;

  constructor(
    httpStatus: number,
    status: KubeStatus,
    request: string,
    retryAfterSeconds = status.details?.retryAfterSeconds,
  ) {
    super(
      "MCO_KUBE_REQUEST_FAILED",
      { request, httpStatus, reason: status.reason ?? "" },
      { message: `${request}: ${status.message ?? `HTTP ${httpStatus}`}` },
    );
    this.httpStatus = httpStatus;
    this.status = status;
    this.retryAfterMs =
      retryAfterSeconds === undefined || retryAfterSeconds <= 0 ? undefined : retryAfterSeconds * 1000;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

const hasReason = (error: unknown, ...reasons: readonly string[]): error is KubeError =>
  error instanceof KubeError && reasons.includes(error.reason);

export const isNotFound = (error: unknown): error is KubeError =>
  hasReason(error, "NotFound") || (error instanceof KubeError && error.httpStatus === 404);
export const isConflict = (error: unknown): error is KubeError => hasReason(error, "Conflict");
export const isAlreadyExists = (error: unknown): error is KubeError => hasReason(error, "AlreadyExists");
export const isExpired = (error: unknown): error is KubeError =>
  hasReason(error, "Expired", "Gone") || (error instanceof KubeError && error.httpStatus === 410);
export const isInvalid = (error: unknown): error is KubeError => hasReason(error, "Invalid", "BadRequest");
/** The account may not do it. Credentials that are not accepted are another matter, and often a passing one. */
export const isForbidden = (error: unknown): error is KubeError => hasReason(error, "Forbidden");
/** The credentials are not, or no longer, accepted. */
export const isUnauthorized = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.httpStatus === 401;
export const isTooManyRequests = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.httpStatus === 429;

/**
 * A budget forbids an eviction: a valid answer, not an overloaded server (kubernetes/kubernetes
 * pkg/registry/core/pod/storage/eviction.go, v1.34).
 */
const isDisruptionBudget = (error: KubeError) =>
  (error.status.details?.causes ?? []).some(({ reason }) => reason === "DisruptionBudget");

/**
 * The object is too large. An API server answers 413 for a request beyond its own limit; what only etcd finds too large is a
 * 500 with etcd's words, or with those of its client (kubernetes/kubernetes#112152; etcd-io/etcd
 * api/v3rpc/rpctypes/error.go; google.golang.org/grpc rpc_util.go).
 */
export const isTooLarge = (error: unknown): error is KubeError =>
  error instanceof KubeError &&
  (error.httpStatus === 413 ||
    (error.httpStatus === 500 &&
      /\brequest is too large\b|\bmessage larger than max\b/.test(error.status.message ?? "")));

/**
 * The server has definitely refused the request. After any other failure of a write it is unknown whether the write was
 * carried out.
 */
export const isRefusal = (error: unknown): error is KubeError =>
  isTooLarge(error) ||
  (error instanceof KubeError &&
    error.httpStatus >= 400 &&
    error.httpStatus < 500 &&
    error.httpStatus !== 408 &&
    error.httpStatus !== 429);

/** The server cannot serve the request for now: it is overloaded or has an internal error. */
export const isBusy = (error: unknown): boolean =>
  error instanceof KubeError &&
  ((error.httpStatus === 429 && !isDisruptionBudget(error)) || (error.httpStatus >= 500 && !isTooLarge(error)));

/**
 * The server could not read an admission policy's parameters, so it judged nothing. A kube-apiserver answers this for
 * up to 30 seconds after its start, until it has discovered the custom resources that policies name as their
 * parameters (k8s.io/apiserver pkg/admission/plugin/policy/validating/dispatcher.go, v0.34). Only the text tells this
 * from a policy's own decision.
 */
const isUnpreparedPolicy = (error: KubeError) =>
  [403, 422].includes(error.httpStatus) &&
  /^[^\n]*\bdenied request: failed to configure (policy|binding): /.test(error.status.message ?? "");

/**
 * The API server is unavailable, busy, not yet prepared or temporarily does not accept our credentials, or another
 * writer was faster: a later retry may succeed. This says nothing about the objects, so no condition shows it as their
 * fault.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof McoError) || error.code !== "MCO_KUBE_REQUEST_FAILED") return false;
  if (!(error instanceof KubeError)) return true;
  return isBusy(error) || isUnpreparedPolicy(error) || [401, 408, 409].includes(error.httpStatus);
}

/** The minimum wait in milliseconds before a retry after `error`; 0 if the server did not request one. */
export const retryAfterMs = (error: unknown): number => (error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0);

/** `undefined` instead of a 404. */
export async function unlessNotFound<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
