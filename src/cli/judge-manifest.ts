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
 * What an API server refuses of a manifest by the definition of its kind alone; a manifest without such errors has the
 * shape of its type.
 */
export function errorsOfShape(manifest: Manifest, served: JudgedKind): readonly Problem[] {
  if (madeByTheCluster.has(manifest.kind)) return [];
  return storedForm(manifest, served).errors;
}

/**
 * Reads manifests from files and folders, each with the shape of its kind, so that everything can be computed of them.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and field.
 */
export function readSoundManifests(paths: readonly string[]): readonly Manifest[] {
  const kinds = kindsToJudge();
  return documentsToUse(paths).map(({ manifest, place, positionOf }) => {
    const served = kinds(manifest.apiVersion, manifest.kind);
    const [error] = served === undefined ? [] : errorsOfShape(manifest, served);
    if (error === undefined) return manifest;
    const reason = `${manifest.kind}/${manifest.metadata.name}: ${error.path}: ${error.reason}`;
    throw invalidManifest({ place, reason, position: positionOf(error.path) });
  });
}

/** A manifest as the API server would store it, the fields that it drops, and why it refuses the rest. */
function storedForm(manifest: Manifest, { schema, definition }: JudgedKind) {
  const copy = structuredClone(manifest) as unknown as Parameters<CompiledSchema["validate"]>[0];
  const dropped = schema.prune(copy);
  schema.applyDefaults(copy);
  const errors = [...schema.validate(copy, undefined), ...definition.validate(copy, undefined, "")]
    .filter(({ isRest }) => isRest !== true)
    .map(({ field, message }): Problem => ({ severity: "error", path: field, reason: message }));
  return { stored: copy as unknown as Manifest, dropped, errors };
}

/**
 * A manifest as the API server would store it, with all findings: first the server's, then those of rendering and the
 * machines.
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
  // A manifest of the wrong shape cannot be judged further.
  if (errors.length > 0) return { stored, hasShape: false, problems: [...errors, ...unknown] };
  const beyond = problemsOfObject(manifest.kind, manifest);
  return { stored, hasShape: true, problems: [...beyond, ...unknown] };
}
