import type { HttpRequest } from "../ports/http.ts";
import { keyOf, timestamp } from "./engine.ts";
import { inVersion } from "./event-conversion.ts";
import { bodyBytes, bodyLimitBytes, bodyText, mediaType, parseText } from "./request-body.ts";
import type { KubeObject, PatchResult } from "./schema/contract.ts";
import { applyServerSide } from "./schema/field-sets.ts";
import { isObject } from "./schema/json-values.ts";
import { jsonPatch, mergePatch, strategicMergePatch } from "./schema/patches.ts";
import { badRequest, conflict, Refusal, tooLarge, unsupportedMediaType } from "./status.ts";
import { invalidOption } from "./write-options.ts";
import { checkIdentity, createObject, modifyObject, type WriteContext, type Written } from "./writes.ts";

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** Changes an object as a patch of any kind says. */
export type Patch = (object: unknown) => PatchResult;

/** Reads the body of a PATCH that is no apply. */
export function readPatch(context: Pick<WriteContext, "served">, request: HttpRequest): Patch | "apply" | Refusal {
  if (bodyBytes(request) > bodyLimitBytes) return tooLarge(bodyLimitBytes);
  const { definition } = context.served;
  const type = mediaType(request);
  if (type === patchTypes.apply) return "apply";
  const served: readonly string[] = definition.custom ? [patchTypes.json, patchTypes.merge, patchTypes.apply] : Object.values(patchTypes);
  if (!served.includes(type)) return unsupportedMediaType(served);
  const patch = parseText(bodyText(request), "json");
  if (patch instanceof Refusal) return patch;
  if (type === patchTypes.json) return (object) => jsonPatch(object, patch);
  if (type === patchTypes.merge) return (object) => mergePatch(object, patch);
  return (object) => strategicMergePatch(object, patch, definition.schema);
}

export function patchRefusal(result: Extract<PatchResult, { verdict: "refused" }>): Refusal {
  return new Refusal(result.status, result.reason, result.message, result.causes === undefined ? undefined : { causes: result.causes });
}

/** PATCH of an object or its status. */
export async function patchObject(context: WriteContext, request: HttpRequest): Promise<Written | Refusal> {
  const patch = readPatch(context, request);
  if (patch instanceof Refusal) return patch;
  if (patch === "apply") return applyObject(context, request);
  return modifyObject(
    context,
    (live) => {
      const result = patch(live);
      if (result.verdict === "refused") return patchRefusal(result);
      if (!isObject(result.object)) return badRequest("the patched object is no object");
      return checkIdentity(context, result.object);
    },
    "track",
  );
}

async function applyObject(context: WriteContext, request: HttpRequest): Promise<Written | Refusal> {
  const { engine, served, target, options } = context;
  const manager = target.query.get("fieldManager") ?? "";
  if (manager === "") return invalidOption("PatchOptions", "fieldManager", "Required value: is required for apply patch", "FieldValueRequired");
  const value = parseText(bodyText(request), "yaml");
  if (value instanceof Refusal) return badRequest(`error decoding YAML: ${value.status.message ?? ""}`);
  if (!isObject(value)) return badRequest("the applied configuration must be an object");
  if (typeof value["apiVersion"] !== "string" || typeof value["kind"] !== "string") return badRequest("apiVersion and kind must be set in an applied configuration");
  const applied = checkIdentity(context, value);
  if (applied instanceof Refusal) return applied;
  const { name } = applied.metadata;
  if (name !== undefined && name !== target.name) return badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  if ((applied.metadata.managedFields ?? []).length > 0) return badRequest("metadata.managedFields must be nil");
  applied.metadata.name = target.name;
  const { resourceVersion, uid } = applied.metadata;
  const own = forEndpoint(context, applied);

  const merge = (live: KubeObject | undefined): KubeObject | Refusal => {
    const result = applyServerSide({
      live,
      applied: own,
      schema: served.definition.schema,
      manager,
      force: options.force,
      time: timestamp(engine.clock.now()),
      ...(target.subresource === "" ? {} : { subresource: target.subresource }),
    });
    switch (result.verdict) {
      case "applied":
        return result.object;
      case "conflict":
        return new Refusal(409, "Conflict", result.message, { causes: result.causes });
      case "refused":
        return new Refusal(result.status, result.status === 422 ? "Invalid" : "BadRequest", result.message);
    }
  };

  if (engine.live.get(keyOf(served, target)) === undefined && target.subresource === "") {
    if ((uid ?? "") !== "") return conflict(served.definition, target.name, `uid mismatch: the provided object specified uid ${uid ?? ""}, and no existing object was found`);
    if ((resourceVersion ?? "") !== "") return conflict(served.definition, target.name);
    const denied = context.mayCreate?.();
    if (denied !== undefined) return denied;
    const object = merge(undefined);
    if (object instanceof Refusal) return object;
    const written = await createObject(context, object, "applied");
    // Somebody else created it meanwhile: then this is a change.
    if (!(written instanceof Refusal && written.status.reason === "AlreadyExists" && !options.dryRun)) return written;
  }
  return modifyObject(
    context,
    (live) => {
      if ((resourceVersion ?? "") !== "" && resourceVersion !== live.metadata.resourceVersion) return conflict(served.definition, target.name);
      if ((uid ?? "") !== "" && uid !== live.metadata.uid) return conflict(served.definition, target.name, `Precondition failed: UID in precondition: ${uid ?? ""}, UID in object meta: ${live.metadata.uid ?? ""}`);
      const object = merge(inVersion(live, served.apiVersion));
      if (object instanceof Refusal) return object;
      const { resourceVersion: current } = live.metadata;
      return { ...object, metadata: { ...object.metadata, ...(current === undefined ? {} : { resourceVersion: current }) } };
    },
    "applied",
  );
}

/** What this endpoint does not write cannot be owned through it: no status by the main one, nothing else by /status. */
function forEndpoint({ served, target }: WriteContext, applied: KubeObject): KubeObject {
  const { resourceVersion: _, uid: __, ...metadata } = applied.metadata;
  if (target.subresource === "status") {
    const { apiVersion, kind } = applied;
    const kept = served.definition.custom ? pick(metadata, ["name", "namespace"]) : metadata;
    return { apiVersion, kind, metadata: kept, ...("status" in applied ? { status: applied["status"] } : {}) };
  }
  if (!served.definition.hasStatus) return { ...applied, metadata };
  const { status: ___, ...rest } = applied;
  return { ...rest, metadata };
}

function pick<T extends object, K extends keyof T>(value: T, keys: readonly K[]): Partial<T> {
  const picked: Partial<T> = {};
  for (const key of keys) if (key in value) picked[key] = value[key];
  return picked;
}
