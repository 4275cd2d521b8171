import { expect, test } from "vitest";
import type { JournalLine } from "../api/books/journal-line.ts";
import type { JournalEntryOf } from "../api/books/report-table.ts";
import { nodeJournal } from "./node-journal.ts";

const unknown = { from: undefined, reached: undefined };

/** The journal of a machine whose daemon reported an update to `run` before it ended, or reports it still. */
function machineWith(run: string, isInherited: boolean) {
  const lines: JournalEntryOf<"node">[] = [];
  const given = { clock: { now: () => 1000 }, nodeName: "worker-0" };
  const report = (line: unknown) => void lines.push(line as JournalEntryOf<"node">);
  const before = nodeJournal({ ...given, report, past: [] });
  before.seen(run, unknown);
  const past = lines.splice(0).map(({ message, ...line }) => ({ ...line, msg: message, at: 0, boot: "b" }));
  const journal = isInherited ? nodeJournal({ ...given, report, past: past as unknown as JournalLine[] }) : before;
  return { journal, said: () => lines.map(({ path, mark, reason, run: of }) => `${of} ${path} ${mark} ${reason}`) };
}

const begins = ["rendered-3 Requested end TargetSeen", "rendered-3 Prepared begin Checking"];

test.for([
  {
    title: "that the machine has reached, and that no daemon told the end of, has succeeded",
    isInherited: true,
    reached: "rendered-2",
    ends: ["rendered-2 Updated end Succeeded"],
  },
  {
    title: "that the machine has not reached stays without an end",
    isInherited: true,
    reached: "rendered-1",
    ends: [],
  },
  {
    title: "that the machine has reached, with the API server's answer lost, has succeeded",
    isInherited: false,
    reached: "rendered-2",
    ends: ["rendered-2 Updated end Succeeded"],
  },
])("an update $title, when the next target comes [daemon-update-sections-1]", ({ isInherited, reached, ends }) => {
  const { journal, said } = machineWith("rendered-2", isInherited);
  journal.seen("rendered-3", { from: "rendered-2", reached });
  expect(said()).toEqual([...ends, ...begins]);
});
