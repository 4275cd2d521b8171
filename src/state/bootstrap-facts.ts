import type { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { bookKindOf, sectionKeyOf } from "../api/books/report-table.ts";
import type { BootstrapFacts } from "../core/operator/health.ts";

/** The facts about the bootstrap of the cluster, by its journal. */
export function bootstrapFactsOf(journal: MachineStateJournal | undefined): BootstrapFacts {
  if (journal === undefined) return { journal: "missing" };
  const { lines } = journal.spec;
  const strange = lines.filter(
    ({ v, book, chapter, path }) =>
      v !== 1 ||
      bookKindOf(book) === undefined ||
      sectionKeyOf(bookKindOf(book) ?? "cluster", chapter, path) === undefined,
  );
  if (strange.length > 0 || lines.length === 0)
    return {
      journal: "unreadable",
      why:
        lines.length === 0
          ? "it has no lines"
          : `${strange.length} of its ${lines.length} lines are of no kind that there is, the first being ${strange[0]?.book ?? ""} ${strange[0]?.chapter ?? ""} ${strange[0]?.path ?? ""}`,
    };
  return { journal: "there", handedOver: lines.some(({ reason }) => reason === "HandedOver"), folded: true };
}
