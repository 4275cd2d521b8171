import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { journalLine, mark } from "./journal-line.ts";
import { atomicList } from "../schema/schema.ts";

export const MachineStateJournal = defineResource({
  kind: "MachineStateJournal",
  plural: "machinestatejournals",
  version: "v1alpha1",
  scope: "Cluster",
  description: "The newest lines of one writer, in a ring: what it did, and why. The books are made from them.",
  spec: Type.Object({
    lines: atomicList(journalLine(), {
      maxItems: 256,
      description: "About 200 boundary lines, 128 KiB at most; the oldest leave first.",
    }),
    last: atomicList(mark(), { maxItems: 64, description: "Of each instance the newest line that was ever here." }),
    dropped: Type.Optional(Type.Integer({ minimum: 0, description: "Boundary lines that never came here." })),
  }),
  columns: [
    {
      name: "Lines",
      type: "integer",
      jsonPath: ".spec.last[0].seq",
      description: "Number of the newest line of the writer that came first.",
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineStateJournal = ResourceOf<typeof MachineStateJournal>;
