import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { type BootstrapInput, type BootstrapOptions, type BootstrapProblem, type Bootstrapped } from "../core/bootstrap.ts";
import { currentGeneratorVersion } from "../controller/run-controller.ts";
import { builtInPools } from "../operator/manifests.ts";
import { usageError } from "./arguments.ts";
import { exitCodes } from "./exit-codes.ts";
import { judgeManifest, servedKinds } from "./judge-manifest.ts";
import { readDocuments } from "./manifests.ts";
import { version } from "./version.ts";

interface Values {
  readonly "manifest-dir"?: string | undefined;
  readonly "dest-dir"?: string | undefined;
  readonly "release-image"?: string | undefined;
  readonly image?: string | undefined;
  readonly json?: boolean | undefined;
}

const suiteImage = `mco.local/machine-config-operator:${version}`;

/** Reads a folder of manifests, lets `make` decide what follows from it, and writes that. Nothing is written when anything is wrong. */
export function bootstrap(values: Values, make: (inputs: readonly BootstrapInput[], options: BootstrapOptions) => Bootstrapped): number {
  const [from, to] = [values["manifest-dir"], values["dest-dir"]];
  if (from === undefined) throw usageError("--manifest-dir is required: the folder of manifests to read");
  if (to === undefined) throw usageError("--dest-dir is required: the folder to write to");
  const problems: BootstrapProblem[] = [];
  const notes: string[] = [];
  const kinds = servedKinds();
  const inputs = readDocuments([from]).flatMap((document): readonly BootstrapInput[] => {
    const at = `${document.place.file}, document ${document.place.document}`;
    if (document.verdict === "refused") {
      const { line, reason, remedy } = document;
      problems.push({ place: line === undefined ? at : `${document.place.file}:${line}`, path: "", reason, ...(remedy === undefined ? {} : { remedy }) });
      return [];
    }
    const { manifest } = document;
    const served = kinds(manifest.apiVersion, manifest.kind);
    if (served === undefined) return [{ object: manifest, place: at }];
    // As the API server would store it: what it would drop or fill in decides about the rendered name.
    const { stored, problems: found } = judgeManifest(manifest, served);
    for (const { severity, path, reason, remedy } of found) {
      const line = document.lineOf(path);
      const place = line === undefined ? at : `${document.place.file}:${line}`;
      const problem = { place, path, reason: `${manifest.kind} ${manifest.metadata.name}: ${reason}`, ...(remedy === undefined ? {} : { remedy }) };
      if (severity === "error") problems.push(problem);
      else notes.push(sentence(problem));
    }
    return [{ object: stored, place: at }];
  });
  const made: Bootstrapped = problems.length > 0 ? { verdict: "refused", problems } : make(inputs, { version, generatorVersion: currentGeneratorVersion, image: values.image ?? suiteImage, builtInPools: builtInPools(), ...(values["release-image"] === undefined ? {} : { releaseImage: values["release-image"] }) });
  const say = (object: object) => process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Bootstrap", ...object })}\n`);
  if (made.verdict === "refused") {
    if (values.json === true) say({ verdict: made.verdict, problems: made.problems, notes });
    else process.stderr.write(`${[...made.problems.map((problem) => `error: ${sentence(problem)}`), ...notes.map((note) => `warning: ${note}`)].join("\n")}\n`);
    return exitCodes.failed;
  }
  for (const { path, object } of made.files) {
    const file = join(to, path);
    mkdirSync(dirname(file), { recursive: true });
    // Rendered configurations hold pull secrets and keys.
    writeFileSync(file, stringify(object, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false, sortMapEntries: true }), { mode: 0o600 });
  }
  const all = [...notes, ...made.notes];
  if (values.json === true) say({ verdict: made.verdict, files: made.files.map(({ path }) => path), notes: all });
  else {
    process.stdout.write(made.files.map(({ path }) => `${join(to, path)}\n`).join(""));
    if (all.length > 0) process.stderr.write(`${all.map((note) => `warning: ${note}`).join("\n")}\n`);
  }
  return exitCodes.ok;
}

const sentence = ({ place, path, reason, remedy }: BootstrapProblem) => `${place === "" ? "" : `${place}: `}${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`;
