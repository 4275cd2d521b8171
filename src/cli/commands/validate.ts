import type { Problem } from "../../ignition/problem.ts";
import { readArguments, usageError } from "../arguments.ts";
import { exitCodes } from "../exit-codes.ts";
import { judgeManifest, servedKinds } from "../judge-manifest.ts";
import { readDocuments } from "../manifests.ts";
import { processIo } from "../io.ts";

/** A problem with where it stands. */
interface Finding extends Problem {
  readonly file: string;
  readonly document: number;
  readonly line?: number;
  /** `MachineConfig/99-worker-chrony` */
  readonly object?: string;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    { filename: { type: "string", short: "f", multiple: true }, json: { type: "boolean" } },
    { positionals: true },
  );
  const paths = [...positionals, ...(values.filename ?? [])];
  if (paths.length === 0) throw usageError("name the files or folders to validate, or '-' for standard input");
  const documents = readDocuments(paths);
  const kinds = servedKinds();
  const seen = new Map<string, string>();
  const findings = documents.flatMap((document): readonly Finding[] => {
    const { place } = document;
    if (document.verdict === "refused") {
      const { line, reason, remedy } = document;
      return [
        {
          ...place,
          severity: "error",
          path: "",
          reason,
          ...(remedy === undefined ? {} : { remedy }),
          ...(line === undefined ? {} : { line }),
        },
      ];
    }
    const { manifest } = document;
    const object = `${manifest.kind}/${manifest.metadata.name}`;
    const served = kinds(manifest.apiVersion, manifest.kind);
    const notOurs: Problem = {
      severity: "warning",
      path: "kind",
      reason: `${manifest.kind} of ${manifest.apiVersion} is no kind of this suite and was not looked at`,
    };
    const problems = [...(served === undefined ? [notOurs] : judgeManifest(manifest, served).problems)];
    const earlier = seen.get(object);
    if (earlier !== undefined)
      problems.push({
        severity: "error",
        path: "metadata.name",
        reason: `${object} stands in ${earlier} too, and only one of the two can count`,
        remedy: "take one of them out",
      });
    seen.set(object, `${place.file} (document ${place.document})`);
    return problems.map((problem) => {
      const line = document.lineOf(problem.path);
      return { ...problem, ...place, object, ...(line === undefined ? {} : { line }) };
    });
  });
  const errors = findings.filter(({ severity }) => severity === "error").length;

  if (values.json === true)
    processIo().out(
      `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Validation", documents: documents.length, errors, warnings: findings.length - errors, problems: findings })}\n`,
    );
  else {
    for (const { document, file, line, object, path, reason, remedy, severity } of findings) {
      processIo().out(
        `${file}:${line ?? 1}: ${severity}: ${object ?? `document ${document}`}: ${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}\n`,
      );
    }
    processIo().out(
      `${count(documents.length, "document")}: ${count(errors, "error")}, ${count(findings.length - errors, "warning")}\n`,
    );
  }
  return errors > 0 ? exitCodes.failed : exitCodes.ok;
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
