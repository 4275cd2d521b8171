import { ContainerRuntimeConfig } from "../api/kinds/container-runtime-config.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { forecastSummary } from "../core/preview/forecast-summary.ts";
import {
  type AdmissionVerdict,
  judgeAmongMembers,
  judgeMembersOfPool,
  judgeObject,
} from "../core/preview/judge-admission.ts";
import { type ClusterForecast, type ClusterObjects, planCluster } from "../core/preview/plan-cluster.ts";
import {
  type RegistryChange,
  changedRegistries,
  isJudgedRegistryKind,
  judgeRegistryObject,
} from "../core/preview/judge-registries.ts";
import { planRegistries } from "../core/preview/plan-registries.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { Logger } from "../ports/logger.ts";
import type { ClientIdentity, ServerHandler } from "../ports/listener.ts";

/**
 * The callers that the handler answers, and the content of the answers.
 *
 * - `open`: every caller gets the plan; for listeners on loopback addresses.
 * - `verdicts`: every caller gets a verdict about what it sends, and no content of the cluster.
 * - `certificates`: a caller without a certificate of the client authority for one of these names gets no answer; an
 *   empty list accepts every name.
 */
export type AdmissionAccess =
  | { readonly to: "open" }
  | { readonly to: "verdicts" }
  | { readonly to: "certificates"; readonly names: readonly string[] };

/** The controller's own user name, as the API server reports it. */
const ownIdentity = `system:serviceaccount:${namespace}:${objects.controller}`;

/** Path that the ValidatingWebhookConfiguration names. */
export const admissionPath = "/validate";

/** The kinds that the webhook is asked about; of those about registries, their own room reads the spec. */
type Judged =
  | MachineConfig
  | MachineConfigPool
  | KubeletConfig
  | ContainerRuntimeConfig
  | (KubeObject & { readonly spec?: unknown });

interface Review {
  readonly apiVersion?: string;
  readonly request?: {
    readonly uid?: string;
    readonly kind?: { readonly group?: string; readonly kind?: string };
    readonly userInfo?: { readonly username?: string };
    readonly object?: Judged | null;
    readonly oldObject?: Judged | null;
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
 * Answers callers of the admission endpoint: those that may ask get what `review` answers to the body.
 *
 * `isReady`: whether reviews are answered now.
 */
export function admissionHandler(options: {
  readonly access: AdmissionAccess;
  readonly isReady: () => boolean;
  readonly review: (body: string | Uint8Array, signal: AbortSignal) => Promise<HttpResponse>;
}): ServerHandler {
  const { access, isReady, review } = options;
  return (request, client, signal) => {
    const answer = (status: number, text: string) => Promise.resolve(refuse(status, text));
    const path = request.target.split("?", 1)[0];
    if (path === "/readyz" && request.method === "GET")
      return isReady() ? answer(200, "ok") : answer(503, "the planner of changes is not ready");
    if (path !== admissionPath) return answer(404, "not found");
    if (access.to === "certificates" && !isKnown(client, access.names))
      return answer(
        client === undefined ? 401 : 403,
        "this endpoint answers the API server, by its client certificate",
      );
    if (request.method !== "POST") return answer(405, "POST an AdmissionReview");
    return review(request.body ?? "", signal);
  };
}

/**
 * Answers AdmissionReviews (k8s.io api admission/v1, master) about MachineConfigs, pools, settings and registries. It
 * refuses objects that could never be rendered, or that cut the cluster off from the image of its release, with field,
 * reason and remedy. It warns of content that does not do what its author expects, and of the effects on pools and
 * machines: the same plan that `mco plan` shows.
 *
 * `facts`: the cluster as in the caches; without them the answer carries no plan. Whether a rendered config may be
 * deleted is the API server's own decision: `core/pool/config-users.ts`.
 */
export function answerReview(
  body: string | Uint8Array,
  options: {
    readonly log: Logger;
    readonly facts?: () => ClusterObjects | undefined;
    /** Called when an object is refused for what other objects are: the facts may be older than the object. */
    readonly onRefusedTogether?: () => void;
  },
): HttpResponse {
  try {
    return judgeReview(body, options);
  } catch (error) {
    // Any program may send a review, and no API server has held it to a schema: it must not end the planner.
    options.log.warn({ error }, "a review could not be judged");
    return refuse(400, "the review holds no object of its kind");
  }
}

function judgeReview(body: string | Uint8Array, options: Parameters<typeof answerReview>[1]): HttpResponse {
  const { log, facts } = options;
  let review: Review | null;
  try {
    review = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)) as Review | null;
  } catch {
    return refuse(400, "the body is no JSON");
  }
  const asked = review?.request;
  if (review?.apiVersion !== "admission.k8s.io/v1" || asked?.uid === undefined)
    return refuse(400, "the body is no AdmissionReview of admission.k8s.io/v1");
  const cluster = () => clusterOf({ log, ...(facts === undefined ? {} : { facts }) });
  const alone = judge(asked, cluster);
  const planned = alone.verdict === "allowed" ? plannedChange(asked, cluster, log) : undefined;
  const together = planned === undefined ? undefined : judgeTogether(asked, planned.forecast);
  if (together?.verdict === "refused") options.onRefusedTogether?.();
  const verdict: AdmissionVerdict =
    together?.verdict === "refused"
      ? together
      : alone.verdict === "allowed"
        ? {
            ...alone,
            warnings: [
              ...alone.warnings.slice(0, mostFindings),
              ...(planned === undefined ? [] : forecastSummary(planned.forecast, planned.about)),
            ],
          }
        : alone;
  if (verdict.verdict !== "allowed")
    log.info(
      { object: (asked.object ?? asked.oldObject)?.metadata.name, reason: verdict.message },
      "refused at admission",
    );
  return json(200, {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: responseOf(asked.uid, verdict, asked),
  });
}

const isKnown = (client: ClientIdentity | undefined, names: readonly string[]): boolean =>
  client !== undefined && (names.length === 0 || names.includes(client.commonName));

/** Findings about the object itself, shown beside the plan. */
const mostFindings = 5;

/** The cluster as in the caches. A failure to read them must not block a write. */
function clusterOf({ facts, log }: Parameters<typeof answerReview>[1]): ClusterObjects | undefined {
  try {
    return facts?.();
  } catch (error) {
    log.warn({ error }, "the cluster could not be read for a review");
    return undefined;
  }
}

interface PlannedChange {
  readonly forecast: ClusterForecast;
  /** The MachineConfig that changes; `undefined`: an object of another kind. */
  readonly about: string | undefined;
}

/**
 * The effects of the change; `undefined`: there are none, or they are not known. The controllers of this suite know them
 * already, and a failed prediction must not block a write.
 */
function plannedChange(
  { kind, object, oldObject, userInfo }: NonNullable<Review["request"]>,
  cluster: () => ClusterObjects | undefined,
  log: Logger,
): PlannedChange | undefined {
  const name = (object ?? oldObject)?.metadata.name;
  if (name === undefined || userInfo?.username?.startsWith(`system:serviceaccount:${namespace}:`) === true)
    return undefined;
  const same =
    object !== null &&
    object !== undefined &&
    oldObject !== null &&
    oldObject !== undefined &&
    equalValues(object.spec, oldObject.spec) &&
    equalValues(object.metadata.labels, oldObject.metadata.labels);
  if (same || object?.metadata.deletionTimestamp !== undefined) return undefined;
  try {
    const before = cluster();
    if (before?.controllerConfig === undefined) return undefined;
    const replaced = <T extends Judged>(list: readonly T[]): readonly T[] => [
      ...list.filter(({ metadata }) => metadata.name !== name),
      ...(object === null || object === undefined ? [] : [object as T]),
    ];
    const changed = (after: Partial<ClusterObjects>, about?: string): PlannedChange => ({
      forecast: planCluster(before, { ...before, ...after }),
      about,
    });
    if (kind?.kind === MachineConfig.kind) return changed({ machineConfigs: replaced(before.machineConfigs) }, name);
    if (kind?.kind === MachineConfigPool.kind) return changed({ pools: replaced(before.pools) });
    const { settings, registries } = before;
    if (isJudgedRegistryKind(kind) && registries !== undefined) {
      const after = changedRegistries(registries, changeOf(oldObject, object));
      const planned = planRegistries({ before: registries, after }, before);
      return changed({ machineConfigs: planned.machineConfigs });
    }
    if (settings === undefined) return undefined;
    if (kind?.kind === KubeletConfig.kind)
      return changed({ settings: { ...settings, kubeletConfigs: replaced(settings.kubeletConfigs) } });
    if (kind?.kind === ContainerRuntimeConfig.kind) {
      const containerRuntimeConfigs = replaced(settings.containerRuntimeConfigs);
      return changed({ settings: { ...settings, containerRuntimeConfigs } });
    }
    return undefined;
  } catch (error) {
    log.warn({ error, object: name }, "the plan of a change could not be made");
    return undefined;
  }
}

/** Refuses what no machine could have together with what the cluster has. */
function judgeTogether(
  { kind, object, oldObject }: NonNullable<Review["request"]>,
  forecast: ClusterForecast,
): AdmissionVerdict | undefined {
  if (object === null || object === undefined) return undefined;
  const { name } = object.metadata;
  if (kind?.kind === MachineConfig.kind) return judgeAmongMembers(name, forecast);
  if (kind?.kind !== MachineConfigPool.kind) return undefined;
  const selectorOf = (pool: Judged | null | undefined) =>
    (pool as MachineConfigPool | null | undefined)?.spec.machineConfigSelector;
  return equalValues(selectorOf(object), selectorOf(oldObject)) ? undefined : judgeMembersOfPool(name, forecast);
}

const changeOf = (before: Judged | null | undefined, after: Judged | null | undefined): RegistryChange => ({
  before: before ?? undefined,
  after: after ?? undefined,
});

function judge(
  { kind, object, oldObject, userInfo }: NonNullable<Review["request"]>,
  cluster: () => ClusterObjects | undefined,
): AdmissionVerdict {
  const allowed = { verdict: "allowed", warnings: [] } as const;
  if (isJudgedRegistryKind(kind) && object?.metadata.deletionTimestamp === undefined)
    return judgeRegistries(changeOf(oldObject, object), cluster);
  if (object === null || object === undefined || object.metadata.deletionTimestamp !== undefined) return allowed;
  const kindName = kind?.kind ?? "";
  const before = oldObject ?? undefined;
  const stored = { before: before as KubeObject | undefined, pools: () => cluster()?.pools };
  if (kindName === MachineConfigPool.kind) return judgeObject(kindName, object as KubeObject, stored);
  // An object that is already stored may still be labelled, annotated and deleted.
  if (before !== undefined && equalValues(object.spec, before.spec)) return allowed;
  // The controller's own objects are merged from judged ones. Any other author is judged, whatever the name.
  if (kindName === MachineConfig.kind && userInfo?.username === ownIdentity) return allowed;
  return judgeObject(kindName, object as KubeObject, stored);
}

function judgeRegistries(change: RegistryChange, cluster: () => ClusterObjects | undefined): AdmissionVerdict {
  const isSame =
    change.before !== undefined &&
    change.after !== undefined &&
    equalValues(specOf(change.before), specOf(change.after));
  if (isSame) return { verdict: "allowed", warnings: [] };
  const around = cluster();
  const registries = around?.registries;
  return judgeRegistryObject(
    change,
    around === undefined || registries === undefined ? undefined : { registries, around },
  );
}

const specOf = (object: KubeObject): unknown => (object as { readonly spec?: unknown }).spec;

function responseOf(uid: string, verdict: AdmissionVerdict, { kind, object }: NonNullable<Review["request"]>): object {
  const warnings = verdict.warnings.length === 0 ? {} : { warnings: verdict.warnings };
  if (verdict.verdict === "allowed") return { uid, allowed: true, ...warnings };
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
