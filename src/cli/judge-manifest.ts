import { definedResources } from "../api/index.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import {
  type CompiledSchema,
  compileSchema,
  definitionsOf,
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

/**
 * A manifest as an API server would store it, and what the server refuses by the definition of its kind alone; a manifest
 * without such errors has the shape of its type.
 */
export function judgeShape(
  manifest: Manifest,
  served: JudgedKind,
): { readonly stored: Manifest; readonly errors: readonly Problem[] } {
  return madeByTheCluster.has(manifest.kind) ? { stored: manifest, errors: [] } : storedForm(manifest, served);
}

/**
 * Reads manifests from files and folders, each as an API server would store it, so that everything can be computed of them.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and field.
 */
export function readSoundManifests(paths: readonly string[]): readonly Manifest[] {
  const kinds = kindsToJudge();
  return documentsToUse(paths).map(({ manifest, place, positionOf }) => {
    const served = kinds(manifest.apiVersion, manifest.kind);
    if (served === undefined) return manifest;
    const { stored, errors } = judgeShape(manifest, served);
    const [error] = errors;
    if (error === undefined) return stored;
    const reason = `${manifest.kind}/${manifest.metadata.name}: ${error.path}: ${error.reason}`;
    throw invalidManifest({ place, reason, position: positionOf(error.path) });
  });
}

/** A manifest as the API server would store it, the fields that it drops, and why it refuses the rest. */
function storedForm(manifest: Manifest, served: JudgedKind) {
  const copy = structuredClone(manifest) as unknown as Parameters<CompiledSchema["validate"]>[0];
  const dropped = served.schema.prune(copy);
  served.schema.applyDefaults(copy);
  const stored = copy as unknown as Manifest;
  const errors = refusals(stored, served).map(({ field, message }): Problem => ({
    severity: "error",
    path: field,
    reason: message,
  }));
  return { stored, dropped, errors };
}

/** Why the API server refuses a manifest in its stored form. */
function refusals(stored: Manifest, { schema, definition }: JudgedKind) {
  const object = stored as unknown as Parameters<CompiledSchema["validate"]>[0];
  return [...schema.validate(object, undefined), ...definition.validate(object, undefined, "")].filter(
    ({ isRest }) => isRest !== true,
  );
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
  const { stored, dropped, errors } = storedForm(manifest, served);
  const unknown = dropped.map((path): Problem => ({
    severity: "warning",
    path,
    reason: "is unknown, and the API server drops it",
    remedy: "take the field out, or correct its name",
  }));
  if (errors.length > 0)
    return {
      stored,
      hasShape: false,
      problems: [...errors, ...problemsBeside(errors, stored, served), ...unknown],
    };
  const beyond = problemsOfObject(stored.kind, stored);
  return { stored, hasShape: true, problems: [...beyond, ...unknown] };
}
