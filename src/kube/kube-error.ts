import { McoError } from "../api/errors.ts";

/** A `Status` answer of the API server (Kubernetes meta/v1 Status). */
export interface KubeStatus {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly name?: string; readonly kind?: string; readonly retryAfterSeconds?: number; readonly causes?: readonly { reason?: string; message?: string; field?: string }[] };
}

/** The API server answered, and said no. */
export class KubeError extends McoError {
  readonly httpStatus: number;
  readonly status: KubeStatus;

  constructor(httpStatus: number, status: KubeStatus, request: string) {
    super("MCO_KUBE_REQUEST_FAILED", { request, httpStatus, reason: status.reason ?? "" }, { message: `${request}: ${status.message ?? `HTTP ${httpStatus}`}` });
    this.httpStatus = httpStatus;
    this.status = status;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

const hasReason = (error: unknown, ...reasons: readonly string[]): error is KubeError => error instanceof KubeError && reasons.includes(error.reason);

export const isNotFound = (error: unknown): error is KubeError => hasReason(error, "NotFound") || (error instanceof KubeError && error.httpStatus === 404);
export const isConflict = (error: unknown): error is KubeError => hasReason(error, "Conflict");
export const isAlreadyExists = (error: unknown): error is KubeError => hasReason(error, "AlreadyExists");
export const isExpired = (error: unknown): error is KubeError => hasReason(error, "Expired", "Gone") || (error instanceof KubeError && error.httpStatus === 410);
export const isInvalid = (error: unknown): error is KubeError => hasReason(error, "Invalid", "BadRequest");
export const isForbidden = (error: unknown): error is KubeError => hasReason(error, "Forbidden", "Unauthorized");
export const isTooManyRequests = (error: unknown): error is KubeError => error instanceof KubeError && error.httpStatus === 429;

/** `undefined` in place of a 404. */
export async function unlessNotFound<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
