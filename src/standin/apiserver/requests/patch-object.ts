import { splitApiVersion } from "../schema/kinds/catalog.ts";
import type { HttpRequest } from "../../../ports/http.ts";
import { keyInStore } from "./engine.ts";
import { inVersion } from "../schema/event-conversion.ts";
import {
  bodyBytes,
  bodyLimitBytes,
  bodyText,
  mediaType,
  parseText,
  problemOfJson,
  type ReadRequest,
  yamlOf,
} from "../http/request-body.ts";
import { inconvertible } from "../schema/merge/canonicalise.ts";
import type { KubeObject, PatchResult } from "../schema/contract.ts";
import { applyServerSide } from "../schema/merge/field-sets.ts";
import { goText, isObject } from "../schema/json-values.ts";
import { jsonPatch, mergePatch, strategicMergePatch } from "../schema/merge/patches.ts";
import { rootSchema } from "../schema/schema-parts.ts";
import {
  badRequest,
  conflict,
  invalid,
  Refusal,
  tooLarge,
  UnreadableObject,
  unsupportedMediaType,
} from "../schema/status.ts";
import { checkIdentity, createObject, modifyObject, nameless, type WriteContext, type Written } from "./writes.ts";
import { timestamp } from "../schema/timestamp.ts";

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** Changes an object by a patch of any kind. */
export type RequestedPatch = (object: unknown) => { readonly object: unknown } | Refusal;

/** 415 for a kind of patch that the kind of object does not have. */
export function checkPatchType({ definition }: WriteContext["served"], request: HttpRequest): Refusal | undefined {
  const served: readonly string[] = definition.custom
    ? [patchTypes.json, patchTypes.merge, patchTypes.apply]
    : Object.values(patchTypes);
  return served.includes(mediaType(request)) ? undefined : unsupportedMediaType(served);
}

/** Reads the body of a PATCH that is no apply. */
export function readPatch(
  context: Pick<WriteContext, "served">,
  request: HttpRequest,
): RequestedPatch | "apply" | Refusal {
  if (bodyBytes(request) > bodyLimitBytes) return tooLarge(bodyLimitBytes);
  const { definition } = context.served;
  const unsupported = checkPatchType(context.served, request);
  if (unsupported !== undefined) return unsupported;
  const type = mediaType(request);
  if (type === patchTypes.apply) return "apply";
  const patch = parseText(bodyText(request), "json");
  if (patch instanceof Refusal) return badRequest(`error decoding patch: ${patch.status.message ?? ""}`);
  if (type === patchTypes.json) return (object) => outcome(jsonPatch(object, patch));
  if (type === patchTypes.merge) return (object) => outcome(mergePatch(object, patch));
  return (object) => {
    const result = strategicMergePatch(object, patch, definition.schema);
    const problem =
      result.verdict === "patched" ? inconvertible(rootSchema(definition.schema), result.object) : undefined;
    return problem === undefined ? outcome(result) : unreadable(goText(patch), problem);
  };
}

function outcome(result: PatchResult): { readonly object: unknown } | Refusal {
  if (result.verdict === "patched") return result;
  return new Refusal(
    result.status,
    result.reason,
    result.message,
    result.causes === undefined ? (result.status === 422 ? {} : undefined) : { causes: result.causes },
  );
}

/** The patch, not the body, made of the object something that is not of its kind. */
function unreadable(value: string, problem: string): Refusal {
  return invalid({ group: "", kind: "" }, "", [
    { reason: "FieldValueInvalid", field: "patch", message: `Invalid value: ${JSON.stringify(value)}: ${problem}` },
  ]);
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
      if (result instanceof Refusal) return result;
      if (!isObject(result.object)) return badRequest("the patched object is no object");
      // A patch of some hundred bytes copies what is there into itself.
      const problem = problemOfJson(result.object, live);
      if (problem !== undefined) return badRequest(`the patched object is none that can be stored: ${problem}`);
      const object = checkIdentity(context, result.object);
      return object instanceof UnreadableObject && !context.served.definition.custom
        ? unreadable(JSON.stringify(result.object), object.problem)
        : object;
    },
    "patched",
  );
}

async function applyObject(context: WriteContext, request: ReadRequest): Promise<Written | Refusal> {
  const { engine, served, target, options } = context;
  const manager = target.query.get("fieldManager") ?? "";
  const value = yamlOf(request);
  if (value instanceof Refusal)
    return value.code === 413 ? value : badRequest(`error decoding YAML: ${value.status.message ?? ""}`);
  if (!isObject(value)) return badRequest("the applied configuration must be an object");
  const { apiVersion, kind } = value;
  if (
    typeof apiVersion !== "string" ||
    typeof kind !== "string" ||
    (!served.definition.custom && (apiVersion !== served.apiVersion || kind !== served.definition.kind))
  ) {
    const version = typeof apiVersion === "string" ? splitApiVersion(apiVersion) : { group: "", version: "" };
    return badRequest(
      `invalid object type: ${version.group}/${version.version}, Kind=${typeof kind === "string" ? kind : ""}`,
    );
  }
  const applied = checkIdentity(context, value);
  if (applied instanceof Refusal) return applied;
  const { name } = applied.metadata;
  if (name !== undefined && name !== target.name)
    return badRequest(`the name of the object (${name}) does not match the name on the URL (${target.name})`);
  if ((applied.metadata.managedFields ?? []).length > 0) return badRequest("metadata.managedFields must be nil");
  applied.metadata.name = target.name;
  const { resourceVersion, uid } = applied.metadata;
  const { resourceVersion: _, uid: __, ...ownMetadata } = applied.metadata;
  const own: KubeObject = { ...applied, metadata: ownMetadata };
  const given = isObject(value["metadata"]) ? value["metadata"] : {};
  const givenName = [given["namespace"], given["name"]].map((part) => (typeof part === "string" ? part : "")).join("/");

  const merge = (live: KubeObject | undefined): KubeObject | Refusal => {
    const result = applyServerSide({
      live,
      applied: own,
      name: givenName,
      reset: resetFields(context),
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
        return new Refusal(result.status, result.status === 400 ? "BadRequest" : "", result.message);
    }
  };

  if (engine.live.get(keyInStore(served, target)) === undefined && target.subresource === "") {
    if ((uid ?? "") !== "")
      return conflict(
        served.definition,
        target.name,
        `uid mismatch: the provided object specified uid ${uid ?? ""}, and no existing object was found`,
      );
    const denied = context.mayCreate?.();
    if (denied !== undefined) return denied;
    const object = merge(undefined);
    if (object instanceof Refusal) return object;
    if ((name ?? "") === "") return nameless(target);
    const written = await createObject(context, object, "applied");
    // Another client created it meanwhile: then this is a change.
    if (!(written instanceof Refusal && written.status.reason === "AlreadyExists" && !options.dryRun)) return written;
  }
  return modifyObject(
    context,
    (live) => {
      if ((uid ?? "") !== "" && uid !== live.metadata.uid)
        return conflict(
          served.definition,
          target.name,
          `Precondition failed: UID in precondition: ${uid ?? ""}, UID in object meta: ${live.metadata.uid ?? ""}`,
        );
      const object = merge(inVersion(live, served.apiVersion));
      if (object instanceof Refusal) return object;
      const current = (resourceVersion ?? "") === "" ? live.metadata.resourceVersion : resourceVersion;
      return {
        ...object,
        metadata: { ...object.metadata, ...(current === undefined ? {} : { resourceVersion: current }) },
      };
    },
    "applied",
  );
}

/**
 * What this endpoint does not write cannot be owned through it: `GetResetFields` of the strategies in `pkg/registry
 * (v1.34)`.
 */
function resetFields({ served, target }: WriteContext): readonly (readonly string[])[] {
  if (target.subresource === "") return served.definition.hasStatus ? [["status"]] : [];
  if (target.subresource !== "status") return [];
  const more: Readonly<Record<string, readonly (readonly string[])[]>> = {
    "deployments.apps": [["metadata", "labels"]],
    pods: [["metadata", "ownerReferences"]],
  };
  return [["spec"], ...(more[served.stored] ?? [])];
}
