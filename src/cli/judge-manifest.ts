import { definedResources } from "../api/index.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import {
  type CompiledSchema,
  compileSchema,
  definitionsOf,
  dropServerFields,
  findMetadataFault,
  openshiftKinds,
  type ResourceDefinition,
} from "../standin/schemas.ts";
import { registryKinds } from "../core/runtime/registry-objects.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { problemsOfObject } from "../core/preview/object-rules.ts";
import type { Problem } from "../ignition/problem.ts";
import { soundPart } from "./sound-part.ts";
import { type Manifest, documentsToUse, invalidManifest } from "./manifests.ts";

export interface JudgedKind {
  readonly definition: ResourceDefinition;
  readonly schema: CompiledSchema;
}

/** OpenShift's kinds that people write for machines, as a cluster of `mco up` defines them. */
const openshiftsOwn = [...registryKinds, openshift.CRIOCredentialProviderConfig];

/** The definition of a kind of the suite, or of one of OpenShift's. */
function definitionOf(apiVersion: string, kind: string): KubeObject | undefined {
  const resource = definedResources.find((one) => one.apiVersion === apiVersion && one.kind === kind);
  if (resource !== undefined) return resource.crd();
  const other = openshiftsOwn.find((one) => one.apiVersion === apiVersion && one.kind === kind);
  return other === undefined
    ? undefined
    : openshiftKinds.find(({ metadata }) => metadata.name === `${other.plural}.${other.group}`);
}

/** The kinds of the suite and OpenShift's, with the rules by which an API server judges them. */
export function kindsToJudge(): (apiVersion: string, kind: string) => JudgedKind | undefined {
  const known = new Map<string, JudgedKind | undefined>();
  return (apiVersion, kind) => {
    const id = `${apiVersion}/${kind}`;
    if (!known.has(id)) {
      const crd = definitionOf(apiVersion, kind);
      const served =
        crd === undefined
          ? undefined
          : definitionsOf(structuredClone(crd) as unknown as Parameters<typeof definitionsOf>[0]);
      const definition = served?.verdict === "served" ? served.definitions[0] : undefined;
      known.set(id, definition === undefined ? undefined : { definition, schema: compileSchema(definition.schema) });
    }
    return known.get(id);
  };
}

/** Nobody writes these, and a file has what somebody kept of them: some fields, of which a few matter. */
const madeByTheCluster: ReadonlySet<string> = new Set([ControllerConfig.kind, OSImageStream.kind]);

const isOf =
  (...resources: readonly Pick<KubeObject, "apiVersion" | "kind">[]) =>
  ({ apiVersion, kind }: Manifest): boolean =>
    resources.some((one) => one.apiVersion === apiVersion && one.kind === kind);

/** Whether the status is a value of a cluster, which files bring where they stand for one. */
const isStatusOfCluster = isOf(ControllerConfig, OSImageStream, openshift.FeatureGate);

/** Nodes are made with their status. */
const isNode = isOf(kubernetes.Node);

/**
 * The role of manifests: `change`, to be applied to what is there; `cluster`, to be applied where nothing is, with the values that
 * a cluster sets; `stored`, objects as a cluster has them.
 */
export type ManifestRole = "change" | "cluster" | "stored";

/**
 * A manifest as an API server would store it, and what the server refuses by the definition of its kind alone, or whatever
 * its kind is; a manifest without such errors has the shape of its type.
 */
export function judgeShape(
  manifest: Manifest,
  served: JudgedKind | undefined,
  role: ManifestRole,
): { readonly stored: Manifest; readonly errors: readonly Problem[] } {
  const byKind = served === undefined || madeByTheCluster.has(manifest.kind) ? undefined : served;
  return storedForm(manifest, byKind, role);
}

/**
 * Reads manifests from files and folders, each as an API server would store it, so that everything can be computed of them.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and field.
 */
export function readSoundManifests(paths: readonly string[]): readonly Manifest[] {
  const kinds = kindsToJudge();
  return documentsToUse(paths).map(({ manifest, place, positionOf }) => {
    const { stored, errors } = judgeShape(manifest, kinds(manifest.apiVersion, manifest.kind), "cluster");
    const [error] = errors;
    if (error === undefined) return stored;
    const remedy = error.remedy === undefined ? "" : `; ${error.remedy}`;
    const reason = `${manifest.kind}/${manifest.metadata.name}: ${error.path}: ${error.reason}${remedy}`;
    throw invalidManifest({ place, reason, position: positionOf(error.path) });
  });
}

/** A manifest as the API server would store it, the fields that it drops, and why it refuses the rest. */
function storedForm(manifest: Manifest, served: JudgedKind | undefined, role: ManifestRole) {
  const copy = structuredClone(manifest) as unknown as Parameters<CompiledSchema["validate"]>[0];
  const stored = copy as unknown as Manifest;
  const fault = metadataFaultOf(stored);
  if (role !== "stored") {
    const statusCounts = isNode(manifest) || (role === "cluster" && isStatusOfCluster(manifest));
    dropServerFields(copy, {
      hasStatus: !statusCounts && (served?.definition.hasStatus ?? true),
      hasGeneration: true,
    });
    delete copy.metadata.managedFields;
  }
  const remedyOf = (field: string) =>
    fault !== undefined && isWithin(fault.field, field) ? { remedy: "correct the field, or take it out" } : {};
  const problemOf = ({ field, message }: Pick<FieldError, "field" | "message">): Problem => ({
    severity: "error",
    path: field,
    reason: message,
    ...remedyOf(field),
  });
  if (served === undefined) return { stored, dropped: [], errors: fault === undefined ? [] : [problemOf(fault)] };
  if (!served.definition.namespaced) delete copy.metadata.namespace;
  const dropped = served.schema.prune(copy);
  served.schema.applyDefaults(copy);
  const found = refusals(stored, served);
  // Empty fields, and those that only a server sets, are gone before the rules of the kind judge the rest.
  const isFound = fault === undefined || found.some(({ field }) => isWithin(fault.field, field));
  return { stored, dropped, errors: (isFound ? found : [fault, ...found]).map(problemOf) };
}

/** Fields by which a manifest names one stored object, or one version of it: an API server refuses them of any other. */
const conditions = ["uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"] as const;
type Condition = (typeof conditions)[number];

/** The conditions that a manifest has. */
function conditionsOf({ metadata }: Manifest): readonly { readonly field: Condition; readonly value: unknown }[] {
  const fields: Readonly<Partial<Record<Condition, unknown>>> = { ...metadata };
  return conditions.flatMap((field) => {
    const value = fields[field];
    return value === undefined || value === null || value === "" ? [] : [{ field, value }];
  });
}

const withoutCondition = "take the field out";

/**
 * Why an API server refuses a manifest because of the object that it has stored, whatever else the manifest holds.
 *
 * @param stored `undefined`: there is none; `unknown`: there may be one.
 */
export function problemsOfConditions(
  manifest: Manifest,
  stored: KubeObject | "unknown" | undefined,
): readonly Problem[] {
  return conditionsOf(manifest).flatMap(({ field, value }): readonly Problem[] => {
    const path = `metadata.${field}`;
    const refused = (reason: string): readonly Problem[] => [
      { severity: "error", path, reason, remedy: withoutCondition },
    ];
    if (stored === undefined)
      return field === "resourceVersion"
        ? refused("is set, and there is no such object: the API server refuses to create one with a version")
        : [];
    if (stored === "unknown") return refused("is a condition on the stored object, which is not read here");
    const present = (stored.metadata as Readonly<Partial<Record<Condition, unknown>>>)[field];
    return present === value
      ? []
      : refused(
          `is ${JSON.stringify(value)}, and the stored object has ${present === undefined ? "none" : JSON.stringify(present)}: the API server refuses the change`,
        );
  });
}

/** A version and a uid that no API server has given. */
const isImpossible = (field: Condition, value: unknown): boolean =>
  (field === "resourceVersion" && !/^[0-9]+$/.test(String(value))) ||
  (field === "uid" && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(value)));

/** The conditions of a manifest, where nothing is known of what is stored. */
const problemsOfUnmetConditions = (manifest: Manifest): readonly Problem[] =>
  conditionsOf(manifest).map(({ field, value }): Problem => {
    const path = `metadata.${field}`;
    return isImpossible(field, value)
      ? { severity: "error", path, reason: "has a form that no API server gives", remedy: withoutCondition }
      : {
          severity: "warning",
          path,
          reason:
            field === "resourceVersion"
              ? "the API server refuses the manifest, unless it has stored the object in this version"
              : "the API server drops it of a new object, and refuses it of one where it is another",
          remedy: withoutCondition,
        };
  });

type FieldError = ReturnType<CompiledSchema["validate"]>[number];

const isWithin = (field: string, path: string): boolean =>
  path === field || (path.startsWith(field) && /^[.[]/.test(path.slice(field.length)));

/** Why an API server cannot read the metadata; takes out what is null. */
const metadataFaultOf = ({ metadata }: Pick<KubeObject, "metadata">) =>
  findMetadataFault(metadata as unknown as Readonly<Record<string, unknown>>);

/** Why the API server refuses a manifest in its stored form. */
function refusals(stored: Manifest, { schema, definition }: JudgedKind): readonly FieldError[] {
  const object = stored as unknown as Parameters<CompiledSchema["validate"]>[0];
  const bySchema = schema.validate(object, undefined).filter(({ isRest }) => isRest !== true);
  const fault = metadataFaultOf(stored);
  // The rules of the kind rely on metadata that can be read.
  if (fault === undefined)
    return [...bySchema, ...definition.validate(object, undefined, "").filter(({ isRest }) => isRest !== true)];
  const isFound = bySchema.some(({ field }) => isWithin(fault.field, field));
  return isFound ? bySchema : [{ reason: "FieldValueTypeInvalid", ...fault }, ...bySchema];
}

/** Refusals after which a value may be of another type than its kind has. */
const ofShape: ReadonlySet<string> = new Set(["FieldValueTypeInvalid", "FieldValueRequired", "FieldValueNotSupported"]);

/** The problems, beside what the API server refuses, of what such a manifest has in the right shape. */
function problemsBeside(errors: readonly Problem[], stored: Manifest, served: JudgedKind): readonly Problem[] {
  const sound = soundPart(stored, (part) =>
    refusals(part, served).flatMap(({ reason, field }) => (ofShape.has(reason) ? [field] : [])),
  );
  if (sound === undefined) return [];
  const refused = new Set(errors.map(({ path }) => path));
  const problems = sound.inWhole(problemsOfObject(sound.part.kind, sound.part));
  return problems.filter(({ path }) => !refused.has(path));
}

/**
 * A manifest as the API server would store it, with all findings: first the server's, then those of rendering and the
 * machines. Of a manifest with a wrong shape, the parts with the right one are judged.
 */
export function judgeManifest(
  manifest: Manifest,
  served: JudgedKind,
): { readonly stored: Manifest; readonly hasShape: boolean; readonly problems: readonly Problem[] } {
  const role = madeByTheCluster.has(manifest.kind) ? "cluster" : "change";
  const { stored, dropped, errors } = storedForm(manifest, served, role);
  const unknown = dropped.map((path): Problem => ({
    severity: "warning",
    path,
    reason: "is unknown, and the API server drops it",
    remedy: "take the field out, or correct its name",
  }));
  const unmet = problemsOfUnmetConditions(manifest).filter(({ path }) => !errors.some((error) => error.path === path));
  if (errors.length > 0)
    return {
      stored,
      hasShape: false,
      problems: [...errors, ...problemsBeside(errors, stored, served), ...unknown, ...unmet],
    };
  const beyond = problemsOfObject(stored.kind, stored);
  return { stored, hasShape: true, problems: [...beyond, ...unknown, ...unmet] };
}
