import type { Problem } from "../../ignition/problem.ts";
import { problemsTogether } from "../../core/preview/judge-together.ts";
import { registryManifestProblems } from "../../core/preview/judge-registries.ts";
import { objectNameOf } from "../../core/runtime/registry-objects.ts";
import { outputFormat, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { exitCodes } from "../exit-codes.ts";
import { judgeByPolicies } from "../judge-by-policies.ts";
import { judgeManifest, judgeShape, kindsToJudge } from "../judge-manifest.ts";
import { type Manifest, readDocuments } from "../manifests.ts";
import { processIo } from "../io.ts";
import { type Finding, type ValidationFormat, validationFormats } from "../validation-formats.ts";
import { withoutPipelineCommands } from "../../core/text/pipeline-commands.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.validate, { positionals: true });
  const paths = [...positionals, ...values.filename];
  if (paths.length === 0) throw usageError("name the files or folders to validate, or '-' for standard input");
  const format = outputFormat(values, Object.keys(validationFormats) as ValidationFormat[]);
  const documents = readDocuments(paths);
  if (documents.length === 0)
    throw usageError(
      `${paths.join(", ")}: there is no manifest: of a folder, files named *.yaml, *.yml and *.json count`,
    );
  const kinds = kindsToJudge();
  const seen = new Map<string, string>();
  const byPolicies = judgeByPolicies(
    documents.flatMap((document) => (document.verdict === "read" ? [document.manifest] : [])),
  );
  const judged = documents.map((document) => ({
    document,
    own: document.verdict !== "read" ? [] : judgeAlone(document.manifest, kinds, byPolicies),
  }));
  const sound = judged.flatMap(({ document, own }) =>
    document.verdict !== "read" || hasErrors(own) ? [] : [document.manifest],
  );
  const [registries, together] = [registryManifestProblems(sound), problemsTogether(sound)];
  const findings = judged.flatMap(({ document, own }): readonly Finding[] => {
    const { place } = document;
    if (document.verdict === "leftAside") {
      const { reason, remedy } = document;
      return [{ ...place, severity: "warning", path: "", reason, remedy }];
    }
    if (document.verdict === "refused") {
      const { position, reason, remedy } = document;
      return [
        {
          ...place,
          severity: "error",
          path: "",
          reason,
          ...(remedy === undefined ? {} : { remedy }),
          ...(position === undefined ? {} : { position }),
        },
      ];
    }
    const { manifest } = document;
    const object = objectNameOf(manifest);
    const problems = [...own, ...(registries.get(object) ?? []), ...(together.get(object) ?? [])];
    const one = `${groupOf(manifest)}/${object}`;
    const earlier = seen.get(one);
    if (earlier !== undefined)
      problems.push({
        severity: "error",
        path: "metadata.name",
        reason: `${object} stands in ${earlier} too, and only one of the two can count`,
        remedy: "take one of them out",
      });
    seen.set(one, `${place.file} (document ${place.document})`);
    return problems.map((problem) => {
      const position = document.positionOf(problem.path);
      return { ...problem, ...place, object, ...(position === undefined ? {} : { position }) };
    });
  });
  const looked = documents.map(({ place, ...document }) =>
    document.verdict === "read" ? { ...place, object: objectNameOf(document.manifest) } : place,
  );
  const report = validationFormats[format]({ documents: looked, findings });
  // One format is commands itself, and another one has escapes of its own.
  processIo().out(format === "github" || format === "junit" ? report : withoutPipelineCommands(report));
  return hasErrors(findings) ? exitCodes.failed : exitCodes.ok;
}

const groupOf = ({ apiVersion }: Manifest): string =>
  apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";

/** What is wrong with a manifest, whatever stands beside it. */
function judgeAlone(
  manifest: Manifest,
  kinds: ReturnType<typeof kindsToJudge>,
  byPolicies: ReturnType<typeof judgeByPolicies>,
): readonly Problem[] {
  const served = kinds(manifest.apiVersion, manifest.kind);
  if (served !== undefined) {
    const { stored, hasShape, problems } = judgeManifest(manifest, served);
    const { definition } = served;
    return hasShape ? [...problems, ...byPolicies({ definition, object: stored, before: undefined })] : problems;
  }
  const reason = `${manifest.kind} of ${manifest.apiVersion} is no kind of this suite and was not looked at`;
  return [...judgeShape(manifest, undefined, "change").errors, { severity: "warning", path: "kind", reason }];
}

const hasErrors = (problems: readonly Problem[]): boolean => problems.some(({ severity }) => severity === "error");
