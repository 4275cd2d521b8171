import { expect, test } from "vitest";
import type { JournalEntryIn } from "../api/books/report-table.ts";
import { type ReportedMemory, reportedMemory } from "./reported-memory.ts";
import { updateSections } from "./update-sections.ts";

/** A machine whose daemon reported an update to `run` before it ended, or reports it still. */
function machineWith(run: string, isInherited: boolean) {
  const lines: JournalEntryIn<"node">[] = [];
  const memory: ReportedMemory = {
    ...reportedMemory([]),
    boot: "b",
    run: { name: run, sections: new Map(), notes: new Set(), began: 0, isInherited },
  };
  const sections = updateSections({ report: (line) => void lines.push(line), clock: { now: () => 1000 }, memory });
  return { sections, said: () => lines.map(({ path, mark, reason, run: of }) => `${of} ${path} ${mark} ${reason}`) };
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
  const { sections, said } = machineWith("rendered-2", isInherited);
  sections.seen("rendered-3", { from: "rendered-2", reached });
  expect(said()).toEqual([...ends, ...begins]);
});
