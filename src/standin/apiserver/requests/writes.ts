import { pushAll } from "../../../api/schema/push-all.ts";
import type { AdmissionRequest } from "../admission/admission.ts";
import { splitApiVersion } from "../schema/kinds/catalog.ts";
import { withDecisionsOf } from "../admission/certificate-requests.ts";
import { type Engine, keyInStore } from "./engine.ts";
import { inVersion } from "../schema/event-conversion.ts";
import { type LiveObject, storedLimitCharacters } from "../storage/live-objects.ts";
import type { ResourceTarget } from "../http/request-target.ts";
import type { FieldError, KubeObject, ObjectMeta, Served } from "../schema/contract.ts";
import { firstTexts } from "../schema/first-texts.ts";
import { fitsTypes, trackUpdate } from "../schema/merge/field-sets.ts";
import { cloneJson, equalJson, isObject } from "../schema/json-values.ts";
import { dropServerFields, findMetadataFault } from "../schema/validation/server-fields.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  invalid,
  notFound,
  Refusal,
  forbidden,
  tooLarge,
  unforeseen,
  UnreadableObject,
} from "../schema/status.ts";
import type { WriteOptions } from "../http/write-options.ts";
import type { Exchange } from "../access/exchange.ts";
import { shareOf } from "../schema/shares.ts";
import { timestamp } from "../schema/timestamp.ts";
import { nameSuffix } from "../schema/name-suffix.ts";
import { signingRequests } from "../access/signing-requests.ts";

/** A write that went through: `created` decides between 201 and 200. */
export interface Written {
  readonly live: Pick<LiveObject, "object" | "json">;
  readonly effect: "created" | "updated" | "unchanged" | "removed";
}

/** Everything that a write needs in addition to the object. */
export interface WriteContext {
  readonly engine: Engine;
  readonly exchange: Exchange;
  readonly served: Served;
  readonly target: ResourceTarget;
  readonly options: WriteOptions;
  /** Asked before a change (apply, PUT) that turns out to be a creation. */
  readonly mayCreate?: () => Refusal | undefined;
}

/**
 * Where a changed object comes from: a body that was read as its kind already, a patch of the live object, or an apply.
 */
export type WriteSource = "decoded" | "patched" | "applied";

/** How often a write that lost a race is done again on the newer object. */
const raceAttempts = 12;

/** Kinds whose creator sets the status: a kubelet registers its node with addresses. */
const keepStatusOnCreate = new Set(["nodes"]);
/**
 * Kinds that PUT may create: `AllowCreateOnUpdate` of their strategies in `k8s.io/kubernetes pkg/registry (master)`.
 */
const createdByUpdate = new Set([
  "leases.coordination.k8s.io",
  "events",
  "endpoints",
  "roles.rbac.authorization.k8s.io",
  "rolebindings.rbac.authorization.k8s.io",
  "clusterroles.rbac.authorization.k8s.io",
  "clusterrolebindings.rbac.authorization.k8s.io",
]);

/** Groups whose kinds are only updated by who names the version: `AllowUnconditionalUpdate` of their strategies. */
const versionNeeded = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "coordination.k8s.io",
  "node.k8s.io",
  "policy",
]);

/** Checks that the body matches the path. Fills in missing fields. */
export function checkIdentity(
  { engine, served, target }: Pick<WriteContext, "engine" | "served" | "target">,
  object: Record<string, unknown>,
): KubeObject | Refusal {
  const { definition } = served;
  const apiVersion = object["apiVersion"] ?? served.apiVersion;
  const kind = object["kind"] ?? definition.kind;
  if (definition.custom && !("kind" in object)) {
    const text = JSON.stringify(object);
    return badRequest(
      `the object provided is unrecognized (must be of type ${definition.kind}): Object 'Kind' is missing in '${text}' (${text.length > 50 ? `${text.slice(0, 30)} ...` : text})`,
    );
  }
  if (typeof apiVersion !== "string" || typeof kind !== "string")
    return badRequest("apiVersion and kind must be strings");
  const given = splitApiVersion(apiVersion);
  const registered = definition.custom || engine.catalog.findKind(given.group, given.version, kind) !== undefined;
  if (!registered || (!definition.custom && kind !== definition.kind)) {
    const why = registered
      ? `converting (${given.version}.${kind}) to (${definition.group === "" ? "core" : definition.group.replace(/\..*/, "")}.${definition.kind}): unknown conversion`
      : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:110"`;
    return new UnreadableObject({ kind, version: given.version }, definition.kind, why);
  }
  if (apiVersion !== served.apiVersion)
    return badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${served.apiVersion})`,
    );
  if (kind !== definition.kind) {
    const name =
      isObject(object["metadata"]) && typeof object["metadata"]["name"] === "string"
        ? object["metadata"]["name"]
        : target.name;
    return invalid({ group: definition.group, kind }, name, [
      {
        reason: "FieldValueInvalid",
        field: "kind",
        message: `Invalid value: ${JSON.stringify(kind)}: must be ${definition.kind}`,
      },
    ]);
  }
  const { apiVersion: _, kind: __, metadata = {}, ...rest } = object;
  if (!isObject(metadata)) return badRequest("metadata must be an object");
  const meta = metadata as ObjectMeta;
  const fault = findMetadataFault(metadata);
  if (fault !== undefined) return new UnreadableObject({ kind, version: given.version }, kind, fault.message);
  if (definition.namespaced) {
    if (meta.namespace !== undefined && meta.namespace !== "" && meta.namespace !== target.namespace) {
      return badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
    }
  }
  const { namespace: ___, ...bare } = meta;
  const placed: ObjectMeta = definition.namespaced ? { ...bare, namespace: target.namespace } : bare;
  return { apiVersion, kind, metadata: placed, ...rest };
}

/** The common way of a new object into the store. `owned`: managedFields were already written by server-side apply. */
export async function createObject(
  context: WriteContext,
  incoming: KubeObject,
  owned: "track" | "applied",
): Promise<Written | Refusal> {
  const { engine, exchange, served, target, options } = context;
  const { definition } = served;
  let object = incoming;
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== "")
    return badRequest("resourceVersion should not be set on objects to be created");
  const isNamedHere = (metadata.name ?? "") === "";
  if (isNamedHere) {
    if ((metadata.generateName ?? "") === "") {
      return invalid(definition, "", [
        {
          reason: "FieldValueRequired",
          field: "metadata.name",
          message: "Required value: name or generateName is required",
        },
      ]);
    }
    metadata.name = generated(engine, metadata.generateName ?? "");
  }
  dropServerFields(object, {
    hasStatus: definition.hasStatus && !keepStatusOnCreate.has(served.stored),
    hasGeneration: served.hasGeneration,
  });
  metadata.uid = engine.random.uuid();
  metadata.creationTimestamp = timestamp(engine.clock.now());
  if (served.hasGeneration) metadata.generation = 1;

  defaultAndPrune(served, object, undefined);
  const by = {
    manager: options.manager,
    time: timestamp(engine.clock.now()),
    ...(target.subresource === "" ? {} : { subresource: target.subresource }),
  };
  // No manager owns the changes of admission.
  if (owned === "track") {
    delete object.metadata.managedFields;
    // This endpoint does not write the status.
    const { status: _, ...rest } = object;
    trackUpdate(undefined, definition.hasStatus ? rest : object, definition.schema, by);
  }

  const request = admissionRequest(context, "CREATE", object, undefined);
  const beforeAdmission = cloneJson(object);
  const mutated = await engine.admission.mutate(request, exchange);
  if (mutated instanceof Refusal) return mutated;
  object = mutated ?? object;
  const changedByAdmission = !equalJson(beforeAdmission, object);
  if (changedByAdmission) defaultAndPrune(served, object, undefined);

  const errors = findErrors(served, object, undefined, "");
  if (errors.length > 0) return invalid(definition, object.metadata.name ?? "", errors);
  warnOfFinalizers(context, object, undefined);

  for (let attempt = 0; ; attempt++) {
    const name = object.metadata.name ?? "";
    // Each name is judged: what may be made with one may be refused with another.
    const objection = await engine.admission.validate({ ...request, name, object }, exchange);
    if (objection !== undefined) return objection;
    const key = keyInStore(served, { namespace: target.namespace, name });
    if (options.dryRun) {
      const there = engine.live.get(key);
      if (there !== undefined) return taken(definition, name, there);
      return { live: { object, json: JSON.stringify(object) }, effect: "created" };
    }
    const { part } = shareOf(exchange.user);
    const commit = engine.live.create(key, inVersion(object, served.storedApiVersion), part);
    if (commit.outcome === "written") return { live: commit.live, effect: "created" };
    if (commit.outcome === "tooLarge") return tooLarge(storedLimitCharacters);
    if (commit.outcome === "noRoom") return withoutRoom(served, name);
    // A generated name that is taken is not the caller's fault; one of the caller's own is.
    if (!isNamedHere || attempt === 7) return taken(definition, name, engine.live.get(key));
    object.metadata.name = generated(engine, incoming.metadata.generateName ?? "");
  }
}

/** As the real server refuses what exceeds a quota. */
function withoutRoom({ definition }: Served, name: string): Refusal {
  return forbidden(definition, name, "exceeded quota: the objects that are stored leave no room for it; delete some");
}

function taken(definition: Served["definition"], name: string, there: LiveObject | undefined): Refusal {
  return alreadyExists(definition, name, there?.object.metadata.deletionTimestamp === undefined ? "stays" : "goes");
}

function generated(engine: Engine, base: string): string {
  return base.slice(0, 58) + nameSuffix(engine.random);
}

/**
 * The common path of a change into the store: `produce` makes the new object from a copy of the live one, and is called
 * again with the newer object after a concurrent write.
 */
export async function modifyObject(
  context: WriteContext,
  produce: (live: KubeObject) => KubeObject | Refusal,
  source: WriteSource,
): Promise<Written | Refusal> {
  const { engine, exchange, served, target } = context;
  for (let attempt = 1; ; attempt++) {
    const live = engine.live.get(keyInStore(served, target));
    if (live === undefined) return notFound(served.definition, target.name);
    const before = inVersion(live.object, served.apiVersion);
    const refusal = engine.admission.approach(admissionRequest(context, "UPDATE", undefined, before), exchange);
    if (refusal !== undefined) return refusal;
    const wanted = produce(cloneJson(before));
    if (wanted instanceof Refusal) return wanted;
    const outcome = await modifyOnce(context, live, before, wanted, source);
    if (outcome !== "raced") return outcome;
    // A caller who named the version that it read is refused by the next pass.
    if (attempt === raceAttempts) return conflict(served.definition, target.name);
  }
}

async function modifyOnce(
  context: WriteContext,
  live: LiveObject,
  before: KubeObject,
  wanted: KubeObject,
  source: WriteSource,
): Promise<Written | Refusal | "raced"> {
  const { engine, exchange, served, target } = context;
  // What follows puts the stored fields in the place of those that were sent.
  const version = wanted.metadata.resourceVersion;
  const problem = source === "patched" ? decode(context, wanted, "patch") : undefined;
  if (problem !== undefined) return problem;
  const mismatch = checkPreconditions(served, target, before, wanted, source);
  if (mismatch !== undefined) return mismatch;

  const prepared = confine(served, target.subresource, before, wanted);
  defaultAndPrune(served, prepared, before);
  keepSystemFields(before, prepared);
  if (source !== "applied") trackManager(context, before, wanted, prepared);

  const request = admissionRequest(context, "UPDATE", prepared, before);
  const object = await mutated(context, request, prepared, before);
  if (object instanceof Refusal) return object;

  const refusal = judgeChange(context, before, object, version);
  if (refusal !== undefined) return refusal;
  warnOfFinalizers(context, object, before);
  countGeneration(context, before, object);
  const objection = await engine.admission.validate({ ...request, object }, exchange);
  return objection ?? commitChange(context, live, before, object);
}

/** Writes down which fields the writer of an update or patch owns from now on. */
function trackManager(context: WriteContext, before: KubeObject, wanted: KubeObject, object: KubeObject): void {
  const { engine, served, target, options } = context;
  const { definition } = served;
  const by = {
    manager: options.manager,
    time: timestamp(engine.clock.now()),
    ...(target.subresource === "" ? {} : { subresource: target.subresource }),
  };
  // The real server reads the metadata of custom objects into Go's type and writes it out again, which drops empty
  // values: nothing is reset.
  if (definition.custom && object.metadata.managedFields?.length === 0) delete object.metadata.managedFields;
  const isCustomStatus = definition.custom && target.subresource === "status";
  const sent = isCustomStatus ? { ...object, metadata: sentMetadata(object, wanted) } : object;
  // What does not fit the schema cannot be tracked; where it is cut off all the same, managers are forgotten.
  if (isCustomStatus && !fitsTypes(wanted, definition.schema)) delete sent.metadata.managedFields;
  else trackUpdate(before, sent, definition.schema, by);
  if (sent.metadata.managedFields === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = sent.metadata.managedFields;
}

/**
 * Of a custom object even metadata that /status does not write counts as the writer's: the real server looks before it
 * cuts.
 */
function sentMetadata(object: KubeObject, wanted: KubeObject): ObjectMeta {
  const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, ...own } = object.metadata;
  const { labels, annotations, ownerReferences, finalizers } = wanted.metadata;
  return {
    ...own,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(finalizers === undefined ? {} : { finalizers }),
  };
}

/** The object after mutating admission. */
async function mutated(
  { engine, exchange, served }: WriteContext,
  request: AdmissionRequest,
  prepared: KubeObject,
  before: KubeObject,
): Promise<KubeObject | Refusal> {
  const untouched = cloneJson(prepared);
  const answer = await engine.admission.mutate(request, exchange);
  if (answer instanceof Refusal) return answer;
  const object = answer ?? prepared;
  if (!equalJson(untouched, object)) {
    defaultAndPrune(served, object, before);
    keepSystemFields(before, object);
  }
  return object;
}

function judgeChange(
  { served, target }: WriteContext,
  before: KubeObject,
  object: KubeObject,
  version: string | undefined,
): Refusal | undefined {
  const outdated = checkVersion(served, target, before, version);
  if (outdated !== undefined) return outdated;
  const errors = findErrors(served, object, before, target.subresource);
  return errors.length > 0 ? invalid(served.definition, target.name, errors) : undefined;
}

function countGeneration({ served, target }: WriteContext, before: KubeObject, object: KubeObject): void {
  if (target.subresource === "status" || !served.hasGeneration) return;
  if (served.definition.generationChanged(before, object))
    object.metadata.generation = (before.metadata.generation ?? 0) + 1;
}

/** Stores the change, if what it was judged by is still true. */
function commitChange(
  { engine, exchange, served, options }: WriteContext,
  live: LiveObject,
  before: KubeObject,
  object: KubeObject,
): Written | Refusal | "raced" {
  const shown = () => ({ object, json: JSON.stringify(object) });
  if (isGone(object)) {
    if (options.dryRun) return { live: shown(), effect: "removed" };
    // The client that removed the last finalizer sees its result, with the previous version; watchers see the stored
    // object.
    const commit = engine.live.remove(live.key, live.revision, live.object);
    return commit.outcome === "written" ? { live: shown(), effect: "removed" } : "raced";
  }
  // Nothing to write, but the object that was read must still be the current one.
  if (sameButTimes(before, object))
    return engine.live.get(live.key)?.revision === live.revision ? { live, effect: "unchanged" } : "raced";
  if (options.dryRun) return { live: shown(), effect: "updated" };
  const { part } = shareOf(exchange.user);
  const commit = engine.live.update(live.key, live.revision, inVersion(object, served.storedApiVersion), part);
  if (commit.outcome === "tooLarge") return tooLarge(storedLimitCharacters);
  if (commit.outcome === "noRoom") return withoutRoom(served, live.key.name);
  return commit.outcome === "written" ? { live: commit.live, effect: "updated" } : "raced";
}

/** 400 for an object that does not say which one it is. */
export function nameless({ name }: Pick<ResourceTarget, "name">): Refusal {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
}

/** Whether PUT may create what is not there. */
export function mayCreateByUpdate(served: Served): boolean {
  return createdByUpdate.has(served.stored);
}

function checkPreconditions(
  served: Served,
  target: ResourceTarget,
  before: KubeObject,
  wanted: KubeObject,
  source: WriteSource,
): Refusal | undefined {
  const { definition } = served;
  const { name = "", uid } = wanted.metadata;
  if (name === "") return nameless(target);
  if (name !== target.name)
    return badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  // Another uid in a whole object is a precondition; a patch that says so tries to change it, which is refused later.
  if (source === "decoded" && uid !== undefined && uid !== "" && uid !== before.metadata.uid) {
    return conflict(
      definition,
      target.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid ?? ""}`,
    );
  }
  return undefined;
}

/** Whether the caller has seen the current version. Checked after admission, as the real server does. */
function checkVersion(
  { definition }: Served,
  target: ResourceTarget,
  before: KubeObject,
  resourceVersion: string | undefined,
): Refusal | undefined {
  if ((resourceVersion ?? "") === "") {
    if (definition.custom || versionNeeded.has(definition.group)) {
      // The real server speaks of the resource here, not of the kind.
      return invalid({ group: definition.group, kind: definition.plural }, target.name, [
        {
          reason: "FieldValueInvalid",
          field: "metadata.resourceVersion",
          message: "Invalid value: 0: must be specified for an update",
        },
      ]);
    }
  } else if (!/^\d+$/.test(resourceVersion ?? "")) {
    return unforeseen(`strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`);
  } else if (resourceVersion !== before.metadata.resourceVersion) {
    return conflict(definition, target.name);
  }
  return undefined;
}

/** Cuts a wanted object down to what the endpoint may change. */
function confine(served: Served, subresource: string, before: KubeObject, wanted: KubeObject): KubeObject {
  const { definition } = served;
  const managed = wanted.metadata.managedFields;
  switch (subresource) {
    case "": {
      if (!definition.hasStatus) return wanted;
      const { status: _, ...rest } = served.stored === "namespaces" ? withFinalizersOf(before, wanted) : wanted;
      return "status" in before ? { ...rest, status: before["status"] } : rest;
    }
    case "status": {
      const { status: _, ...kept } = before;
      // A custom resource's status endpoint touches nothing else; kubelets do label nodes and annotate pods through it.
      const metadata: ObjectMeta = definition.custom ? { ...before.metadata } : { ...wanted.metadata };
      if (served.stored === "pods") {
        if (before.metadata.ownerReferences === undefined) delete metadata.ownerReferences;
        else metadata.ownerReferences = before.metadata.ownerReferences;
      }
      if (served.stored === "deployments.apps") {
        if (before.metadata.labels === undefined) delete metadata.labels;
        else metadata.labels = before.metadata.labels;
      }
      if (managed === undefined) delete metadata.managedFields;
      else metadata.managedFields = managed;
      if (served.stored === signingRequests)
        return {
          ...kept,
          metadata,
          ...("status" in wanted ? { status: withDecisionsOf(before, wanted["status"]) } : {}),
        };
      const status =
        served.stored === "pods" && isObject(wanted["status"]) && isObject(before["status"])
          ? {
              ...(before["status"]["qosClass"] === undefined ? {} : { qosClass: before["status"]["qosClass"] }),
              ...wanted["status"],
            }
          : wanted["status"];
      return { ...kept, metadata, ...("status" in wanted ? { status } : {}) };
    }
    case "finalize": {
      const spec = isObject(before["spec"]) ? before["spec"] : {};
      const finalizers = isObject(wanted["spec"]) ? wanted["spec"]["finalizers"] : undefined;
      const { finalizers: _, ...otherSpec } = spec;
      return {
        ...before,
        metadata: { ...before.metadata },
        spec: finalizers === undefined ? otherSpec : { ...otherSpec, finalizers },
      };
    }
    case "approval": {
      const { conditions: _, ...status } = isObject(before["status"]) ? before["status"] : {};
      const conditions = isObject(wanted["status"]) ? wanted["status"]["conditions"] : undefined;
      return {
        ...before,
        metadata: { ...before.metadata },
        status: conditions === undefined ? status : { ...status, conditions },
      };
    }
    default:
      return wanted;
  }
}

/**
 * What holds a namespace until it is empty changes by /finalize alone; without it, the content would pass on to whoever next
 * creates a namespace of this name: `pkg/registry/core/namespace/strategy.go (v1.34)` PrepareForUpdate.
 */
function withFinalizersOf(before: KubeObject, namespace: KubeObject): KubeObject {
  const { finalizers: _, ...spec } = isObject(namespace["spec"]) ? namespace["spec"] : {};
  const finalizers = namespaceFinalizers(before);
  return { ...namespace, spec: { ...spec, ...(finalizers.length === 0 ? {} : { finalizers: [...finalizers] }) } };
}

/** Fields that only the server sets. */
function keepSystemFields(before: KubeObject, object: KubeObject): void {
  const { metadata } = object;
  const kept: ObjectMeta = {};
  for (const field of [
    "name",
    "generateName",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
  ] as const) {
    const value = before.metadata[field];
    // Only a delete can mark an object as deleted: other attempts are refused later.
    if (value === undefined && field.startsWith("deletion")) continue;
    if (field === "uid" && metadata.uid !== undefined && metadata.uid !== "") continue;
    delete metadata[field];
    if (value !== undefined) Object.assign(kept, { [field]: value });
  }
  object.metadata = { ...kept, ...metadata };
}

/**
 * Reads an object as its kind: drops what the schema does not know, fills defaults, and reports dropped fields in the
 * way that the caller requests. A refusal names the body, or for patches the patched value.
 */
export function decode(
  { served, options, exchange }: WriteContext,
  object: KubeObject,
  source: "body" | "patch",
  duplicates: readonly string[] = [],
): Refusal | undefined {
  const { kind, apiVersion } = object;
  const inBody = (problem: string) =>
    new UnreadableObject({ kind, version: splitApiVersion(apiVersion).version }, kind, problem);
  const inPatch = (problem: string) =>
    invalid({ group: "", kind: "" }, "", [
      { reason: "FieldValueInvalid", field: "patch", message: `Invalid value: ${JSON.stringify(given)}: ${problem}` },
    ]);
  const refused = source === "body" ? inBody : inPatch;
  let given = source === "patch" && options.fieldValidation === "Strict" ? JSON.stringify(object) : "";
  // Custom objects are read as they are, and judged by their schema later.
  const unreadable = served.definition.custom ? undefined : served.schema.undecodable(object);
  if (unreadable !== undefined) {
    given = JSON.stringify(object);
    return refused(unreadable);
  }
  const unknown = shown(served.schema.prune(object)).map((path) => `unknown field ${JSON.stringify(path)}`);
  const complaints = [...shown(duplicates).map((path) => `duplicate field ${JSON.stringify(path)}`), ...unknown];
  if (complaints.length > 0 && options.fieldValidation === "Strict") {
    return refused(`strict decoding error: ${complaints.join(", ")}`);
  }
  if (options.fieldValidation === "Warn") pushAll(exchange.warnings, complaints);
  served.schema.applyDefaults(object);
  return undefined;
}

/** The first paths of a list, as many as sigs.k8s.io/json (v1.35) collects. */
const shown = (paths: readonly string[]): readonly string[] => firstTexts(paths, (path) => path).texts;

function defaultAndPrune(served: Served, object: KubeObject, before: KubeObject | undefined): void {
  served.schema.prune(object);
  served.schema.applyDefaults(object);
  served.definition.prepare(object, before);
}

/** Finalizers of custom objects are free; new ones that may clash with others' are warned of. */
function warnOfFinalizers(
  { served, exchange, target }: WriteContext,
  object: KubeObject,
  before: KubeObject | undefined,
): void {
  if (!served.definition.custom || target.subresource !== "") return;
  const known = new Set(before?.metadata.finalizers);
  for (const finalizer of [...new Set(object.metadata.finalizers)].filter((one) => !known.has(one)).toSorted()) {
    if (
      finalizer.includes("/") ||
      finalizer === "orphan" ||
      finalizer === "foregroundDeletion" ||
      finalizer === "kubernetes"
    )
      continue;
    const advice = finalizer.includes(".") ? "name including a path (/) to" : "name to";
    exchange.warnings.push(
      `metadata.finalizers: ${JSON.stringify(finalizer)}: prefer a domain-qualified finalizer ${advice} avoid accidental conflicts with other finalizer writers`,
    );
  }
}

/** The violations of the kind's schema and rules. */
function findErrors(
  { schema, definition }: Served,
  object: KubeObject,
  before: KubeObject | undefined,
  subresource: string,
): readonly FieldError[] {
  // Only a binding may give a pod its node.
  const compared =
    subresource === "binding" && before !== undefined
      ? {
          ...before,
          spec: {
            ...(isObject(before["spec"]) ? before["spec"] : {}),
            nodeName: isObject(object["spec"]) ? object["spec"]["nodeName"] : undefined,
          },
        }
      : before;
  const found = schema.validate(object, before);
  // Built-in kinds define uniqueness in their validation; the keys of their lists are for patches only.
  const errors = [
    ...definition.validate(object, compared, subresource),
    ...(definition.custom ? found : found.filter(({ reason }) => reason !== "FieldValueDuplicate")),
  ];
  // The status of a custom object is judged by itself: texts name fields below it.
  return definition.custom && subresource === "status" ? errors.map((error) => new StatusError(error)) : errors;
}

class StatusError implements FieldError {
  readonly reason: string;
  readonly #error: FieldError;

  constructor(error: FieldError) {
    this.reason = error.reason;
    this.#error = error;
  }

  get field(): string {
    return this.#error.field;
  }

  get message(): string {
    return this.#error.message.replace(/status\.(\S+ in body )/, "$1");
  }
}

function admissionRequest(
  context: WriteContext,
  operation: "CREATE" | "UPDATE",
  object: KubeObject | undefined,
  before: KubeObject | undefined,
): AdmissionRequest {
  const { served, target, options } = context;
  const kind = operation === "CREATE" ? "CreateOptions" : "UpdateOptions";
  return {
    operation,
    served,
    subresource: target.subresource,
    namespace: target.namespace,
    name: (object ?? before)?.metadata.name ?? "",
    object,
    before,
    dryRun: options.dryRun,
    options: {
      kind,
      apiVersion: "meta.k8s.io/v1",
      ...(options.dryRun ? { dryRun: ["All"] } : {}),
      fieldManager: options.manager,
      fieldValidation: options.fieldValidation,
    },
  };
}

/** Nothing holds it any more. */
export function isGone(object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds > 0 || finalizers.length > 0) return false;
  return !(object.kind === "Namespace" && object.apiVersion === "v1" && namespaceFinalizers(object).length > 0);
}

export function namespaceFinalizers(namespace: KubeObject): readonly unknown[] {
  const spec = namespace["spec"];
  return isObject(spec) && Array.isArray(spec["finalizers"]) ? spec["finalizers"] : [];
}

/** Equal but for the times in managedFields, which alone are no reason to write. */
function sameButTimes(before: KubeObject, after: KubeObject): boolean {
  return equalJson(withoutTimes(before), withoutTimes(after));
}

function withoutTimes(object: KubeObject): unknown {
  const { managedFields = [], ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, managedFields: managedFields.map(({ time: _, ...entry }) => entry) } };
}
