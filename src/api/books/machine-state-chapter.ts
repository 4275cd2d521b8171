import Type, { type Static } from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { lineFields, mark } from "./journal-line.ts";
import { atomicList, dateTime, mapOf, oneOf } from "../schema/schema.ts";
import { sectionOutcomes } from "./report-table.ts";

const has = () =>
  Type.Object({
    config: Type.Optional(Type.String({ maxLength: 253 })),
    image: Type.Optional(Type.String({ maxLength: 447 })),
    version: Type.Optional(Type.String({ maxLength: 63 })),
  });

const section = () =>
  Type.Object({
    path: Type.String({ maxLength: 253, description: "Which section: docs/books.md." }),
    startedAt: dateTime({ description: "When it began." }),
    endedAt: Type.Optional(dateTime({ description: "When it ended; absent: it has not." })),
    durationMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        format: "int64",
        description: "How long it took: within one boot by a clock that does not jump.",
      }),
    ),
    outcome: Type.Optional(oneOf(sectionOutcomes, { description: "How it ended." })),
    reason: Type.Optional(Type.String({ maxLength: 63, description: "The last reason given." })),
    message: Type.Optional(Type.String({ maxLength: 1024, description: "The same for people." })),
    attempts: Type.Integer({ minimum: 0, description: "How often it was begun." }),
    inferred: Type.Optional(Type.Boolean({ description: "Its end was not reported: it follows from later lines." })),
    details: Type.Optional(
      mapOf(Type.String({ maxLength: 1024 }), { description: "Data of its lines, beside their messages." }),
    ),
  });
/** A step of a chapter. */
export type ChapterSection = Static<ReturnType<typeof section>>;

const entry = () =>
  Type.Object({
    ...lineFields(),
    late: Type.Optional(
      Type.String({ maxLength: 253, description: "It belongs to this chapter, which was closed before it came." }),
    ),
    skew: Type.Optional(
      Type.Boolean({ description: "Its clock does not fit to the others': it was placed by what caused it." }),
    ),
  });
/** One line as a chapter stores it. */
export type ChapterEntry = Static<ReturnType<typeof entry>>;

const chapterSpec = () =>
  Type.Object({
    book: Type.String({ minLength: 1, maxLength: 260, description: "Book that it is in." }),
    number: Type.Integer({ minimum: 1, description: "Its number in the book, dense." }),
    chapter: Type.String({
      minLength: 1,
      maxLength: 63,
      description: "The stage that it records: Update, Drift, Rollout, …",
    }),
    run: Type.String({
      maxLength: 253,
      description: "Which instance of it: a target's name or a uid; empty where there is one at a time.",
    }),
    pool: Type.Optional(Type.String({ maxLength: 253, description: "Pool that its subject was in." })),
    cause: Type.Optional(
      Type.Object({
        text: Type.String({ maxLength: 1024, description: "The event that opened the chapter." }),
        by: Type.Optional(
          Type.String({ maxLength: 253, description: "The field manager that caused it, as far as it is known." }),
        ),
        parent: Type.Optional(
          Type.String({ maxLength: 320, description: "Chapter that it is a part of, as book and number or run." }),
        ),
      }),
    ),
    from: Type.Optional(has()),
    to: Type.Optional(has()),
    startedAt: dateTime({ description: "When it began." }),
    endedAt: Type.Optional(dateTime({ description: "When it ended; absent: it has not." })),
    durationMs: Type.Optional(Type.Integer({ minimum: 0, format: "int64", description: "How long it took." })),
    duration: Type.Optional(Type.String({ maxLength: 31, description: "The same for people: 2m31s." })),
    outOfServiceMs: Type.Optional(
      Type.Integer({ minimum: 0, format: "int64", description: "How long the machine took no pods for it." }),
    ),
    state: oneOf(["Open", "Closed", "Abandoned"], {
      description: "Abandoned: its writer has not reported for more than an hour, and it has no end.",
    }),
    outcome: Type.Optional(oneOf(sectionOutcomes, { description: "How it ended." })),
    reason: Type.Optional(Type.String({ maxLength: 63, description: "Of the last section that failed or ended." })),
    message: Type.Optional(Type.String({ maxLength: 1024, description: "The same for people." })),
    next: Type.Optional(
      Type.String({ maxLength: 512, description: "The next step of an administrator; absent: none." }),
    ),
    confidence: oneOf(["Told", "Observed"], { description: "Observed: it was not reported, but seen from outside." }),
    skew: Type.Optional(Type.Boolean({ description: "Clocks of its writers did not fit together." })),
    missed: Type.Optional(Type.Integer({ minimum: 0, description: "Lines that are known to be missing." })),
    sections: atomicList(section(), { maxItems: 1000, description: "Its steps, in the order in which they happen." }),
    entries: atomicList(entry(), { maxItems: 256, description: "Its reports." }),
    folded: Type.Optional(
      atomicList(
        Type.Object({
          path: Type.String({ maxLength: 253 }),
          count: Type.Integer({ minimum: 1 }),
          first: dateTime(),
          last: dateTime(),
          lastMessage: Type.String({ maxLength: 1024 }),
        }),
        { maxItems: 64, description: "Lines that were folded away, by section." },
      ),
    ),
    dropped: Type.Integer({ minimum: 0, description: "How many lines were folded away." }),
    through: atomicList(mark(), { maxItems: 32, description: "Up to where the lines of each writer are in it." }),
  });

export const MachineStateChapter = defineResource({
  kind: "MachineStateChapter",
  plural: "machinestatechapters",
  version: "v1alpha1",
  scope: "Cluster",
  description:
    "One instance of a stage in the life of a node, a pool, a build or the cluster: what happened, in which steps, how it ended, and why. Never changed once it is closed.",
  spec: chapterSpec(),
  rules: [
    {
      rule: "self.spec.book == oldSelf.spec.book && self.spec.number == oldSelf.spec.number && self.spec.chapter == oldSelf.spec.chapter && self.spec.run == oldSelf.spec.run",
      message: "book, number, chapter and run of a chapter stay as they are",
    },
    {
      rule: "oldSelf.spec.state != 'Closed' || self.spec == oldSelf.spec",
      message: "a closed chapter is never changed",
    },
    {
      rule: "oldSelf.spec.state == 'Closed' || self.spec.state != 'Open' || size(self.spec.entries) + self.spec.dropped >= size(oldSelf.spec.entries) + oldSelf.spec.dropped",
      message: "an open chapter keeps its entries",
    },
  ],
  columns: [
    { name: "Book", type: "string", jsonPath: ".spec.book", description: "Book that it is in." },
    { name: "No.", type: "integer", jsonPath: ".spec.number", description: "Its number." },
    { name: "Chapter", type: "string", jsonPath: ".spec.chapter", description: "The stage that it records." },
    { name: "Started", type: "date", jsonPath: ".spec.startedAt", description: "When it began." },
    { name: "Duration", type: "string", jsonPath: ".spec.duration", description: "How long it took." },
    { name: "Outcome", type: "string", jsonPath: ".spec.outcome", description: "How it ended." },
    { name: "Reason", type: "string", jsonPath: ".spec.reason", description: "Why." },
  ],
});
export type MachineStateChapter = ResourceOf<typeof MachineStateChapter>;
/** The record of a chapter. */
export type Chapter = Static<ReturnType<typeof chapterSpec>>;
