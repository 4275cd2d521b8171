import { hostname } from "node:os";
import { join } from "node:path";
import type { JournalLine } from "../api/books/journal-line.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { fieldManagers, journals } from "../api/names.ts";
import { appendLines, journalLineIn } from "../core/books/journal.ts";
import { bootstrapJournal, handOverLine, inOrder } from "../core/operator/bootstrap-journal.ts";
import { createBufferedJournal } from "../kube/buffered-journal.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isForbidden, isUnauthorized } from "../kube/kube-error.ts";
import { createReport } from "../kube/report.ts";
import type { Ports } from "../ports/index.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemFiles } from "../ports/node/index.ts";
import { lineFolder } from "./folder-store.ts";
import { version } from "./version.ts";

export interface HandOverOptions extends Pick<Ports, "clock" | "random" | "log"> {
  readonly kube: KubeClient;
  /** Folder of journal files that the programs of a bootstrap share. */
  readonly folder: string;
}

/** Between two attempts while the cluster does not take the journal. */
const retryMs = 500;
/** A new cluster takes some seconds until it serves the kind; after so many attempts somebody should know. */
const attemptsInSilence = 20;

/**
 * Hands the journal lines of a bootstrap to the cluster, as its MachineStateJournal `bootstrap`, and reports that as
 * the last of them. It retries until the cluster serves the kind and has taken every line; a line is never there twice.
 *
 * @returns the number of boundary lines that the cluster has; 0: the folder holds no lines, and nothing was written.
 * @throws the API server's refusal if the user may not write the journal.
 */
export async function handOver(options: HandOverOptions, signal: AbortSignal): Promise<number> {
  const { kube, folder, clock, log } = options;
  if ((await linesIn(folder)).length === 0) return 0;
  await reportHandOver(options);
  const lines = inOrder(await linesIn(folder));
  for (let failures = 1; ; failures += 1) {
    try {
      return await send(kube, lines, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isForbidden(error) || isUnauthorized(error)) throw error;
      log[failures === attemptsInSilence ? "info" : "debug"](
        { error },
        "the cluster does not take the bootstrap's journal yet",
      );
      await clock.sleep(retryMs, signal);
    }
  }
}

/** All lines that bootstrap programs have left in a folder. */
export async function linesIn(folder: string): Promise<readonly JournalLine[]> {
  const names = (await systemFiles.list(folder)).filter((name) => name.endsWith(".jsonl")).sort();
  const texts = await Promise.all(names.map((name) => systemFiles.readText(join(folder, name))));
  return texts.flatMap((text) => (text ?? "").split("\n").flatMap((line) => journalLineIn(line) ?? []));
}

/** Writes the line into the folder, unless an earlier attempt has. */
async function reportHandOver({ folder, clock, random, log }: HandOverOptions): Promise<void> {
  const before = await linesIn(folder);
  if (before.some(({ reason }) => reason === "HandedOver")) return;
  const journal = createBufferedJournal({
    clock,
    log,
    writer: { component: "state", instance: hostname(), version },
    boot: random.uuid(),
    store: lineFolder(folder, "state"),
  });
  createReport({ journal, log: silentLogger })({ book: "cluster", ...handOverLine(before) });
  await journal.flush();
}

/** Creates the journal, or adds the lines that it lacks. @returns the number of its lines. */
async function send(kube: KubeClient, lines: readonly JournalLine[], signal: AbortSignal): Promise<number> {
  const name = journals.bootstrap;
  const owner = fieldManagers.journal;
  const existing = await kube.get(MachineStateJournal, { name }, { signal });
  if (existing === undefined) {
    const made = await kube.create(MachineStateJournal, bootstrapJournal(lines).object as MachineStateJournal, {
      owner,
      signal,
    });
    return made.spec.lines.length;
  }
  const change = appendLines(existing.spec, lines);
  if (change === undefined) return existing.spec.lines.length;
  const unchanged = {
    op: "replace" as const,
    path: "/metadata/resourceVersion",
    value: existing.metadata.resourceVersion,
  };
  const operations = [unchanged, ...change.operations];
  return (await kube.patch(MachineStateJournal, { name }, { type: "json", operations }, { owner, signal })).spec.lines
    .length;
}
