import { definedResources } from "../../api/index.ts";
import type { MachineConfig } from "../../api/machine-config.ts";
import type { MachineConfigPool } from "../../api/machine-config-pool.ts";
import { definitionsOf } from "../../apiserver/schema/custom-resource-definition.ts";
import { compileSchema } from "../../apiserver/schema/structural.ts";
import type { CompiledSchema, ResourceDefinition } from "../../apiserver/schema/contract.ts";
import { problemsOfPool } from "../../core/judge-admission.ts";
import { validateMachineConfig } from "../../core/validate-machine-config.ts";
import type { Problem } from "../../ignition/problem.ts";
import { readArguments, usageError } from "../arguments.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Manifest, readDocuments } from "../manifests.ts";

/** A problem with where it stands. */
interface Finding extends Problem {
  readonly file: string;
  readonly document: number;
  readonly line?: number;
  /** `MachineConfig/99-worker-chrony` */
  readonly object?: string;
}

interface Served {
  readonly definition: ResourceDefinition;
  readonly schema: CompiledSchema;
}

/** The kinds of the suite, with the rules by which an API server judges them. */
function servedKinds(): (apiVersion: string, kind: string) => Served | undefined {
  const known = new Map<string, Served | undefined>();
  return (apiVersion, kind) => {
    const id = `${apiVersion}/${kind}`;
    if (!known.has(id)) {
      const resource = definedResources.find((one) => one.apiVersion === apiVersion && one.kind === kind);
      const served = resource === undefined ? undefined : definitionsOf(structuredClone(resource.crd()) as unknown as Parameters<typeof definitionsOf>[0]);
      const definition = served?.verdict === "served" ? served.definitions[0] : undefined;
      known.set(id, definition === undefined ? undefined : { definition, schema: compileSchema(definition.schema) });
    }
    return known.get(id);
  };
}

/** Everything there is to say of one manifest: first what the API server says, then what rendering and the machines do. */
function problemsOf(manifest: Manifest, served: Served | undefined): readonly Problem[] {
  if (served === undefined) return [{ severity: "warning", path: "kind", reason: `${manifest.kind} of ${manifest.apiVersion} is no kind of this suite and was not looked at` }];
  const copy = structuredClone(manifest) as unknown as Parameters<CompiledSchema["validate"]>[0];
  const unknown = served.schema.prune(copy).map((path): Problem => ({ severity: "warning", path, reason: "is unknown, and the API server drops it", remedy: "take the field out, or correct its name" }));
  served.schema.applyDefaults(copy);
  const errors = [...served.schema.validate(copy, undefined), ...served.definition.validate(copy, undefined)].map(({ field, message }): Problem => ({ severity: "error", path: field, reason: message }));
  // What has the wrong shape cannot be judged further.
  if (errors.length > 0) return [...errors, ...unknown];
  const beyond = manifest.kind === "MachineConfig" ? validateMachineConfig(manifest as MachineConfig) : manifest.kind === "MachineConfigPool" ? problemsOfPool(manifest as MachineConfigPool) : [];
  return [...beyond, ...unknown];
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { filename: { type: "string", short: "f", multiple: true }, json: { type: "boolean" } }, { positionals: true });
  const paths = [...positionals, ...(values.filename ?? [])];
  if (paths.length === 0) throw usageError("name files or folders");
  const documents = readDocuments(paths);
  const kinds = servedKinds();
  const seen = new Map<string, string>();
  const findings = documents.flatMap((document): readonly Finding[] => {
    const { place } = document;
    if (document.verdict === "refused") {
      const { line, reason, remedy } = document;
      return [{ ...place, severity: "error", path: "", reason, ...(remedy === undefined ? {} : { remedy }), ...(line === undefined ? {} : { line }) }];
    }
    const { manifest } = document;
    const object = `${manifest.kind}/${manifest.metadata.name}`;
    const problems = [...problemsOf(manifest, kinds(manifest.apiVersion, manifest.kind))];
    const earlier = seen.get(object);
    if (earlier !== undefined) problems.push({ severity: "error", path: "metadata.name", reason: `${object} stands in ${earlier} too, and only one of the two can count`, remedy: "take one of them out" });
    seen.set(object, `${place.file} (document ${place.document})`);
    return problems.map((problem) => {
      const line = document.lineOf(problem.path);
      return { ...problem, ...place, object, ...(line === undefined ? {} : { line }) };
    });
  });
  const errors = findings.filter(({ severity }) => severity === "error").length;

  if (values.json === true) process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Validation", documents: documents.length, errors, warnings: findings.length - errors, problems: findings })}\n`);
  else {
    for (const { document, file, line, object, path, reason, remedy, severity } of findings) {
      process.stdout.write(`${file}:${line ?? 1}: ${severity}: ${object ?? `document ${document}`}: ${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}\n`);
    }
    process.stdout.write(`${count(documents.length, "document")}: ${count(errors, "error")}, ${count(findings.length - errors, "warning")}\n`);
  }
  return errors > 0 ? exitCodes.failed : exitCodes.ok;
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
