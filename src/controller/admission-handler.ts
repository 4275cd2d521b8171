import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { namespace, objects } from "../api/names.ts";
import { forecastSummary } from "../core/preview/forecast-summary.ts";
import {
  type AdmissionVerdict,
  judgeDeletion,
  judgeMachineConfig,
  judgePool,
} from "../core/preview/judge-admission.ts";
import { type ClusterObjects, planCluster } from "../core/preview/plan-cluster.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClientIdentity, ServerHandler } from "../ports/listener.ts";

/**
 * The callers that the handler answers, and what it tells them.
 *
 * - `open`: every caller gets the plan and the users of a config; for listeners on loopback addresses.
 * - `verdicts`: every caller gets a verdict about what it sends, and no content of the cluster.
 * - `certificates`: a caller that shows no certificate of the client authority with one of these names gets nothing;
 *   no names: any name.
 */
export type AdmissionAccess =
  | { readonly to: "open" }
  | { readonly to: "verdicts" }
  | { readonly to: "certificates"; readonly names: readonly string[] };

/** The controller's own user name, as the API server reports it. */
const ownIdentity = `system:serviceaccount:${namespace}:${objects.controller}`;

/** Path that the ValidatingWebhookConfiguration names. */
export const admissionPath = "/validate";

interface Review {
  readonly apiVersion?: string;
  readonly request?: {
    readonly uid?: string;
    readonly kind?: { readonly group?: string; readonly kind?: string };
    readonly userInfo?: { readonly username?: string };
    readonly object?: MachineConfig | MachineConfigPool | null;
    readonly oldObject?: MachineConfig | MachineConfigPool | null;
  };
}

const json = (status: number, body: unknown): HttpResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const refuse = (status: number, text: string): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain" },
  body: `${text}\n`,
});

/**
 * Answers AdmissionReviews (k8s.io api admission/v1, master) about MachineConfigs and pools. It refuses objects that
 * could never be rendered, with field, reason and remedy. It warns of content that does not do what its author expects,
 * and of the effects on pools and machines: the same plan that `mco plan` shows.
 *
 * `facts`: the cluster as in the controllers' caches; without them the answer carries no plan. `usersOf`: the users of
 * a rendered config; without it, or when it does not know, deletions are not judged.
 */
export function admissionHandler(options: {
  readonly log: Logger;
  readonly access?: AdmissionAccess;
  readonly facts?: () => ClusterObjects | undefined;
  readonly usersOf?: (config: string) => readonly string[] | undefined;
}): ServerHandler {
  const access = options.access ?? { to: "open" };
  const facts = access.to === "verdicts" ? undefined : options.facts;
  const summing = { log: options.log, ...(facts === undefined ? {} : { facts }) };
  return async (request, client) => {
    const path = request.target.split("?", 1)[0];
    if (path === "/readyz" && request.method === "GET") return refuse(200, "ok");
    if (path !== admissionPath) return refuse(404, "not found");
    if (access.to === "certificates" && !isKnown(client, access.names))
      return refuse(
        client === undefined ? 401 : 403,
        "this endpoint answers the API server, by its client certificate",
      );
    if (request.method !== "POST") return refuse(405, "POST an AdmissionReview");
    let review: Review;
    try {
      review = JSON.parse(
        typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body),
      ) as Review;
    } catch {
      return refuse(400, "the body is no JSON");
    }
    const asked = review.request;
    if (review.apiVersion !== "admission.k8s.io/v1" || asked?.uid === undefined)
      return refuse(400, "the body is no AdmissionReview of admission.k8s.io/v1");
    let verdict = withoutUsers(judge(asked, options.usersOf), access);
    if (verdict.verdict !== "allowed")
      options.log.info(
        { object: (asked.object ?? asked.oldObject)?.metadata.name, reason: verdict.message },
        "refused at admission",
      );
    if (verdict.verdict === "allowed")
      verdict = { ...verdict, warnings: [...verdict.warnings.slice(0, mostFindings), ...summaryOf(asked, summing)] };
    return Promise.resolve(
      json(200, {
        apiVersion: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: responseOf(asked.uid, verdict, asked),
      }),
    );
  };
}

const isKnown = (client: ClientIdentity | undefined, names: readonly string[]): boolean =>
  client !== undefined && (names.length === 0 || names.includes(client.commonName));

/** A stranger learns that a rendered config cannot go, whose name it knows, but not what uses it. */
const withoutUsers = (verdict: AdmissionVerdict, { to }: AdmissionAccess): AdmissionVerdict =>
  verdict.verdict === "forbidden" && to === "verdicts"
    ? { ...verdict, message: "the rendered config is in use; mco explain names its users" }
    : verdict;

/** Findings about the object itself, shown beside the plan. */
const mostFindings = 5;

/**
 * The effects of the change, as text. The controllers of this suite know them already, and a failed prediction must not
 * block a write.
 */
function summaryOf(
  { kind, object, oldObject, userInfo }: NonNullable<Review["request"]>,
  { facts, log }: { readonly log: Logger; readonly facts?: () => ClusterObjects | undefined },
): readonly string[] {
  const name = (object ?? oldObject)?.metadata.name;
  if (name === undefined || userInfo?.username?.startsWith(`system:serviceaccount:${namespace}:`) === true) return [];
  const same =
    object !== null &&
    object !== undefined &&
    oldObject !== null &&
    oldObject !== undefined &&
    equalValues(object.spec, oldObject.spec) &&
    equalValues(object.metadata.labels, oldObject.metadata.labels);
  if (same || object?.metadata.deletionTimestamp !== undefined) return [];
  try {
    const before = facts?.();
    if (before?.controllerConfig === undefined) return [];
    const replaced = <T extends MachineConfig | MachineConfigPool>(list: readonly T[]): readonly T[] => [
      ...list.filter(({ metadata }) => metadata.name !== name),
      ...(object === null || object === undefined ? [] : [object as T]),
    ];
    if (kind?.kind === MachineConfig.kind)
      return forecastSummary(planCluster(before, { ...before, machineConfigs: replaced(before.machineConfigs) }), name);
    if (kind?.kind === MachineConfigPool.kind)
      return forecastSummary(planCluster(before, { ...before, pools: replaced(before.pools) }), undefined);
    return [];
  } catch (error) {
    log.warn({ error, object: name }, "the plan of a change could not be made");
    return [];
  }
}

function judge(
  { kind, object, oldObject, userInfo }: NonNullable<Review["request"]>,
  usersOf: ((config: string) => readonly string[] | undefined) | undefined,
): AdmissionVerdict {
  const allowed = { verdict: "allowed", warnings: [] } as const;
  const isDeletion = (object === null || object === undefined) && oldObject !== null && oldObject !== undefined;
  if (isDeletion && kind?.kind === MachineConfig.kind)
    return judgeDeletion(oldObject, usersOf?.(oldObject.metadata.name) ?? []);
  if (object === null || object === undefined || object.metadata.deletionTimestamp !== undefined) return allowed;
  if (kind?.kind === MachineConfigPool.kind)
    return judgePool(object as MachineConfigPool, (oldObject ?? undefined) as MachineConfigPool | undefined);
  // An object that is already stored may still be labelled, annotated and deleted.
  if (oldObject !== null && oldObject !== undefined && equalValues(object.spec, oldObject.spec)) return allowed;
  // The controller's own objects are merged from judged ones. Any other author is judged, whatever the name.
  if (kind?.kind === MachineConfig.kind && userInfo?.username !== ownIdentity)
    return judgeMachineConfig(object as MachineConfig);
  return allowed;
}

function responseOf(uid: string, verdict: AdmissionVerdict, { kind, object }: NonNullable<Review["request"]>): object {
  const warnings = verdict.warnings.length === 0 ? {} : { warnings: verdict.warnings };
  if (verdict.verdict === "allowed") return { uid, allowed: true, ...warnings };
  if (verdict.verdict === "forbidden")
    return { uid, allowed: false, status: { code: 403, reason: "Forbidden", message: verdict.message }, ...warnings };
  const causes = verdict.causes.map(({ field, message }) => ({ reason: "FieldValueInvalid", field, message }));
  // With kind and name kubectl prints: The MachineConfig "x" is invalid: <field>: <message>.
  const details = { group: kind?.group ?? "", kind: kind?.kind ?? "", name: object?.metadata.name ?? "", causes };
  return {
    uid,
    allowed: false,
    status: { code: 422, reason: "Invalid", message: verdict.message, details },
    ...warnings,
  };
}
