import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import type { JournalEntryIn } from "../api/books/report-table.ts";
import { bootstrapJournal, bootstrapLines } from "../core/operator/bootstrap-journal.ts";
import { createBufferedJournal } from "../kube/buffered-journal.ts";
import { jsonLogger, systemClock, systemRandom } from "../ports/node/index.ts";
import {
  type BootstrapInput,
  type BootstrapOptions,
  type BootstrapProblem,
  type Bootstrapped,
} from "../core/operator/bootstrap.ts";
import { currentGeneratorVersion } from "../controller/run-controller.ts";
import { builtInPools } from "../operator/manifests.ts";
import { usageError } from "./arguments.ts";
import { exitCodes } from "./exit-codes.ts";
import { lineFolder } from "./folder-store.ts";
import { linesIn } from "./hand-over.ts";
import { judgeManifest, kindsToJudge } from "./judge-manifest.ts";
import { documentOf, placeText, readDocuments } from "./manifests.ts";
import { version } from "./version.ts";
import { createReport } from "../kube/report.ts";
import { silentLogger } from "../ports/logger.ts";
import { processIo } from "./io.ts";

interface Values {
  readonly "manifest-dir"?: string | undefined;
  readonly "dest-dir"?: string | undefined;
  readonly "journal-dir"?: string | undefined;
  readonly "release-image"?: string | undefined;
  readonly image?: string | undefined;
  readonly json?: boolean | undefined;
}

const suiteImage = `mco.local/machine-config-operator:${version}`;

/**
 * Reads a folder of manifests, lets `make` decide what follows from it, and writes the result. On any error it writes
 * nothing except the journal, into the folder named for it.
 */
export async function bootstrap(
  component: "operator" | "controller",
  values: Values,
  make: (inputs: readonly BootstrapInput[], options: BootstrapOptions) => Bootstrapped,
): Promise<number> {
  const [from, to] = [values["manifest-dir"], values["dest-dir"]];
  if (from === undefined) throw usageError("--manifest-dir is required: the folder of manifests to read");
  if (to === undefined) throw usageError("--dest-dir is required: the folder to write to");
  const problems: BootstrapProblem[] = [];
  const notes: string[] = [];
  const kinds = kindsToJudge();
  const inputs = readDocuments([from]).flatMap((document): readonly BootstrapInput[] => {
    const at = [document.place.file, ...documentOf(document.place)].join(", ");
    if (document.verdict === "leftAside") {
      notes.push(sentence({ place: at, path: "", reason: document.reason, remedy: document.remedy }));
      return [];
    }
    if (document.verdict === "refused") {
      const { position, reason, remedy } = document;
      problems.push({
        place: position === undefined ? at : placeText(document.place, position),
        path: "",
        reason,
        ...(remedy === undefined ? {} : { remedy }),
      });
      return [];
    }
    const { manifest } = document;
    const served = kinds(manifest.apiVersion, manifest.kind);
    if (served === undefined) return [{ object: manifest, place: at }];
    // As the API server would store it: dropped and defaulted fields change the rendered name.
    const { stored, problems: found } = judgeManifest(manifest, served);
    for (const { severity, path, reason, remedy } of found) {
      const position = document.positionOf(path);
      const place = position === undefined ? at : placeText(document.place, position);
      const problem = {
        place,
        path,
        reason: `${manifest.kind} ${manifest.metadata.name}: ${reason}`,
        ...(remedy === undefined ? {} : { remedy }),
      };
      if (severity === "error") problems.push(problem);
      else notes.push(sentence(problem));
    }
    return [{ object: stored, place: at }];
  });
  const journalFolder = values["journal-dir"] ?? join(to, "journal");
  const journal = createBufferedJournal({
    clock: systemClock,
    log: jsonLogger({ component, level: "warn" }),
    writer: { component, instance: hostname(), version },
    boot: systemRandom.uuid(),
    store: lineFolder(journalFolder, component),
  });
  const report = createReport({ journal, log: silentLogger });
  const writeLines = async (lines: readonly JournalEntryIn<"cluster">[]) => {
    for (const line of lines) report({ book: "cluster", ...line });
    await journal.flush();
  };
  const made: Bootstrapped =
    problems.length > 0
      ? { verdict: "refused", problems }
      : make(inputs, {
          version,
          generatorVersion: currentGeneratorVersion,
          image: values.image ?? suiteImage,
          builtInPools: builtInPools(),
          ...(values["release-image"] === undefined ? {} : { releaseImage: values["release-image"] }),
        });
  const say = (object: object) =>
    processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Bootstrap", ...object })}\n`);
  if (made.verdict === "made" || values["journal-dir"] !== undefined) await writeLines(bootstrapLines(component, made));
  if (made.verdict === "refused") {
    if (values.json) say({ verdict: made.verdict, problems: made.problems, notes });
    else
      processIo().err(
        `${[...made.problems.map((problem) => `error: ${sentence(problem)}`), ...notes.map((note) => `warning: ${note}`)].join("\n")}\n`,
      );
    return exitCodes.failed;
  }
  const files = [...made.files];
  // What was reported so far comes to the cluster with its manifests; `mco state hand-over` completes it.
  if (component === "controller") files.push(bootstrapJournal(await linesIn(journalFolder)));
  for (const { path, object } of files) {
    const file = join(to, path);
    mkdirSync(dirname(file), { recursive: true });
    // Rendered configurations hold pull secrets and keys.
    writeFileSync(
      file,
      stringify(object, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false, sortMapEntries: true }),
      { mode: 0o600 },
    );
  }
  const all = [...notes, ...made.notes];
  if (values.json)
    say({ verdict: made.verdict, files: files.map(({ path }) => path), journal: journalFolder, notes: all });
  else {
    processIo().out(files.map(({ path }) => `${join(to, path)}\n`).join(""));
    if (all.length > 0) processIo().err(`${all.map((note) => `warning: ${note}`).join("\n")}\n`);
  }
  return exitCodes.ok;
}

const sentence = ({ place, path, reason, remedy }: BootstrapProblem) =>
  `${place === "" ? "" : `${place}: `}${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`;
