import type { JournalLine } from "../../api/books/journal-line.ts";
import { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import { journals } from "../../api/names.ts";
import type { JournalEntryIn } from "../../api/books/report-table.ts";
import type { BootstrapFile, Bootstrapped } from "./bootstrap.ts";
import { appendLines } from "../books/journal.ts";
import { andMore } from "../text/list-text.ts";

const chapter = "Bootstrap";

/** The result of a bootstrap run, as journal lines of the cluster's book. */
export function bootstrapLines(
  component: "operator" | "controller",
  made: Bootstrapped,
): readonly JournalEntryIn<"cluster">[] {
  if (made.verdict === "refused") {
    const [first] = made.problems;
    const more = made.problems.length - 1;
    return [
      {
        chapter,
        path: "ManifestsRendered",
        mark: "fail",
        level: "boundary",
        reason: "ManifestsRefused",
        message: `${component}: ${first?.reason ?? "nothing can be made"}${more > 0 ? `, ${andMore(more)}` : ""}`,
        ...(first?.remedy === undefined ? {} : { next: { action: first.remedy, actor: "administrator" } }),
      },
    ];
  }
  if (component === "operator")
    return [
      {
        chapter,
        path: "ManifestsRendered",
        mark: "end",
        level: "boundary",
        reason: "ManifestsRendered",
        message: `${made.files.length} manifests were made`,
        data: { manifests: made.files.length },
      },
    ];
  return made.files.flatMap(({ object }) => {
    if (object.kind !== "MachineConfigPool") return [];
    const configuration = (
      object as {
        readonly spec?: { readonly configuration?: { readonly name?: string; readonly source?: readonly unknown[] } };
      }
    ).spec?.configuration;
    const name = configuration?.name ?? "";
    return [
      {
        chapter,
        path: `ControllerRendered/${object.metadata.name}` as const,
        mark: "end",
        level: "boundary",
        reason: "PoolRendered",
        message: `pool ${object.metadata.name} has ${name}`,
        data: { config: name, machineConfigs: configuration?.source?.length ?? 0 },
      } as const,
    ];
  });
}

/** The bootstrap server takes requests. */
export const serverUpLine = (port: number, access: string): JournalEntryIn<"cluster"> => ({
  chapter,
  path: "ServerUp",
  mark: "end",
  level: "boundary",
  reason: "ServerUp",
  message: `the config server answers on port ${port}, access ${access}`,
  data: { access, port },
});

/** The last line before the journal goes to the cluster, with the counts of the lines before it. */
export function handOverLine(lines: readonly JournalLine[]): JournalEntryIn<"cluster"> {
  const of = (level: JournalLine["level"]) => lines.filter((line) => line.level === level).length;
  return {
    chapter,
    path: "HandedOver",
    mark: "end",
    level: "boundary",
    reason: "HandedOver",
    message: "the lines of the bootstrap were handed to the cluster",
    data: { lines: of("boundary"), progressLines: of("progress"), debugLines: of("debug") },
  };
}

/** Lines of several programs in the order in which they were written. */
export const inOrder = (lines: readonly JournalLine[]): readonly JournalLine[] =>
  lines.toSorted((a, b) => a.at - b.at || (a.boot === b.boot ? a.seq - b.seq : 0));

/** The manifest by which the cluster learns of them: the boundary lines, the newest where they are too many. */
export function bootstrapJournal(lines: readonly JournalLine[]): BootstrapFile {
  const spec = appendLines({ lines: [], last: [] }, inOrder(lines))?.spec ?? { lines: [], last: [] };
  return {
    path: "journals/bootstrap.yaml",
    object: {
      apiVersion: MachineStateJournal.apiVersion,
      kind: MachineStateJournal.kind,
      metadata: { name: journals.bootstrap },
      spec,
    } as BootstrapFile["object"],
  };
}
