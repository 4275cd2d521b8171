import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { mark } from "./journal-line.ts";
import { atomicList, dateTime, mapOf, oneOf } from "../schema/schema.ts";
import { sectionOutcomes } from "./report-table.ts";

export const MachineStateBook = defineResource({
  kind: "MachineStateBook",
  plural: "machinestatebooks",
  version: "v1alpha1",
  scope: "Cluster",
  description:
    "The life story of one thing: a node, a pool, a build, or the cluster. Its chapters are MachineStateChapters.",
  spec: Type.Object({
    book: Type.String({
      minLength: 1,
      maxLength: 260,
      description: "node/worker-0, pool/worker, build/NAME, cluster.",
    }),
    kind: oneOf(["node", "pool", "build", "cluster"], { description: "Kind of book." }),
    subject: Type.Object(
      {
        kind: Type.String({ maxLength: 63, description: "Kind of the object that the book is about." }),
        name: Type.String({ maxLength: 253, description: "Its name." }),
        uid: Type.Optional(Type.String({ maxLength: 63, description: "Its uid." })),
      },
      { description: "The subject of the book." },
    ),
    /** RFC 3339: when the subject disappeared. */
    subjectGoneAt: Type.Optional(dateTime({ description: "When the subject was deleted; absent: it exists." })),
    chapters: atomicList(
      Type.Object({
        number: Type.Integer({ minimum: 1, description: "Its number." }),
        chapter: Type.String({ maxLength: 63, description: "Its kind." }),
        startedAt: dateTime({ description: "When it began." }),
        endedAt: Type.Optional(dateTime({ description: "When it ended." })),
        outcome: Type.Optional(oneOf(sectionOutcomes, { description: "How it ended." })),
        reason: Type.Optional(Type.String({ maxLength: 63, description: "Why." })),
      }),
      { maxItems: 20, description: "The newest 20 chapters, oldest first." },
    ),
    counters: mapOf(Type.Integer({ minimum: 0 }), {
      description: "How many chapters there ever were: chapters, and CHAPTER/OUTCOME. They never fall.",
    }),
    health: Type.String({
      maxLength: 63,
      description: "The word for how it is: Idle, the kind of the open chapter, or how the last one ended.",
    }),
    lastNumber: Type.Integer({ minimum: 0, description: "Number of the newest chapter." }),
    prunedThrough: Type.Integer({
      minimum: 0,
      description: "Number of the newest chapter that was thrown away; 0: none.",
    }),
    through: atomicList(mark(), { maxItems: 64, description: "Up to where the lines of each writer are in chapters." }),
  }),
  rules: [
    {
      rule: "self.spec.book == oldSelf.spec.book && self.spec.kind == oldSelf.spec.kind && self.spec.lastNumber >= oldSelf.spec.lastNumber",
      message: "a book stays the same book, and its chapters are numbered upwards",
    },
  ],
  columns: [
    { name: "Kind", type: "string", jsonPath: ".spec.kind", description: "Kind of book." },
    { name: "Subject", type: "string", jsonPath: ".spec.subject.name", description: "The subject of the book." },
    { name: "Health", type: "string", jsonPath: ".spec.health", description: "How it is." },
    { name: "Chapters", type: "integer", jsonPath: ".spec.lastNumber", description: "Chapters so far." },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineStateBook = ResourceOf<typeof MachineStateBook>;
