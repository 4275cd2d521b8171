import { MachineConfig } from "../api/machine-config.ts";
import { MachineConfigPool } from "../api/machine-config-pool.ts";
import { type AdmissionVerdict, judgeMachineConfig, judgePool } from "../core/judge-admission.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { Logger } from "../ports/logger.ts";
import type { ServerHandler } from "../ports/listener.ts";

/** Path that the ValidatingWebhookConfiguration names. */
export const admissionPath = "/validate";

interface Review {
  readonly apiVersion?: string;
  readonly request?: {
    readonly uid?: string;
    readonly kind?: { readonly group?: string; readonly kind?: string };
    readonly object?: MachineConfig | MachineConfigPool | null;
    readonly oldObject?: MachineConfig | MachineConfigPool | null;
  };
}

const json = (status: number, body: unknown): HttpResponse => ({ status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
const refuse = (status: number, text: string): HttpResponse => ({ status, headers: { "content-type": "text/plain" }, body: `${text}\n` });

/**
 * Answers AdmissionReviews (k8s.io/api admission/v1, master) about MachineConfigs and pools: refuses what could never be
 * rendered, with field, reason and remedy, and warns of what will not do what its author expects.
 */
export function admissionHandler(options: { readonly log: Logger }): ServerHandler {
  return async (request) => {
    const path = request.target.split("?", 1)[0];
    if (path === "/readyz" && request.method === "GET") return refuse(200, "ok");
    if (path !== admissionPath) return refuse(404, "not found");
    if (request.method !== "POST") return refuse(405, "POST an AdmissionReview");
    let review: Review;
    try {
      review = JSON.parse(typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body)) as Review;
    } catch {
      return refuse(400, "the body is no JSON");
    }
    const asked = review.request;
    if (review.apiVersion !== "admission.k8s.io/v1" || asked?.uid === undefined) return refuse(400, "the body is no AdmissionReview of admission.k8s.io/v1");
    const verdict = judge(asked);
    if (verdict.verdict === "refused") options.log.info({ object: asked.object?.metadata.name, reason: verdict.message }, "refused at admission");
    return Promise.resolve(json(200, { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: responseOf(asked.uid, verdict, asked) }));
  };
}

function judge({ kind, object, oldObject }: NonNullable<Review["request"]>): AdmissionVerdict {
  const allowed = { verdict: "allowed", warnings: [] } as const;
  if (object === null || object === undefined || object.metadata.deletionTimestamp !== undefined) return allowed;
  // What was stored once may still be labelled, annotated and deleted.
  if (oldObject !== null && oldObject !== undefined && equalValues(object.spec, oldObject.spec)) return allowed;
  if (kind?.kind === MachineConfig.kind) return judgeMachineConfig(object as MachineConfig);
  if (kind?.kind === MachineConfigPool.kind) return judgePool(object as MachineConfigPool);
  return allowed;
}

function responseOf(uid: string, verdict: AdmissionVerdict, { kind, object }: NonNullable<Review["request"]>): object {
  const warnings = verdict.warnings.length === 0 ? {} : { warnings: verdict.warnings };
  if (verdict.verdict === "allowed") return { uid, allowed: true, ...warnings };
  const causes = verdict.causes.map(({ field, message }) => ({ reason: "FieldValueInvalid", field, message }));
  // With kind and name kubectl says: The MachineConfig "x" is invalid: <field>: <message>.
  const details = { group: kind?.group ?? "", kind: kind?.kind ?? "", name: object?.metadata.name ?? "", causes };
  return { uid, allowed: false, status: { code: 422, reason: "Invalid", message: verdict.message, details }, ...warnings };
}
