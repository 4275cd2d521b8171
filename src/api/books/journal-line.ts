import Type, { type Static } from "typebox";
import { atomicList, mapOf, oneOf } from "../schema/schema.ts";
import { reportMarks, sectionOutcomes } from "./report-table.ts";

const text = (maxLength: number, description: string) => Type.String({ maxLength, description });

/** The writer of a line: each writer and boot has its own sequence of numbers. */
export const writerSchema = () =>
  Type.Object({
    component: text(63, "Part of the suite: daemon, first-boot, controller, operator, …"),
    instance: text(253, "Which one of them: the name of the node or of the pod."),
    node: Type.Optional(text(253, "The node that it runs on.")),
    version: Type.Optional(text(63, "Its version.")),
  });

/** The last known line of a writer. */
export const mark = () =>
  Type.Object({
    component: text(63, "The writer's component."),
    instance: text(253, "The writer's instance."),
    boot: text(63, "Boot id of its machine, or uid of its pod."),
    seq: Type.Integer({ minimum: 0, description: "Number of its newest line of that boot." }),
  });
/** The last known line of a writer. */
export type JournalMark = Static<ReturnType<typeof mark>>;

/** The fields that a journal line and a chapter entry share. */
export const lineFields = () => ({
  writer: writerSchema(),
  boot: text(63, "Boot id of the machine; of a pod its uid."),
  seq: Type.Integer({
    minimum: 0,
    description:
      "Number of the boundary line, dense for each writer and boot; other lines carry that of the one before them.",
  }),
  sub: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Number of a progress or debug line since the last boundary line.",
    }),
  ),
  at: Type.Integer({ description: "Milliseconds since the epoch, by the writer's clock.", format: "int64" }),
  mono: Type.Integer({ description: "Milliseconds since the boot.", format: "int64" }),
  path: text(253, "Section of the chapter."),
  mark: oneOf(reportMarks, { description: "The effect of the line on its section." }),
  level: oneOf(["boundary", "progress", "debug"], { description: "Boundary lines are never dropped." }),
  outcome: Type.Optional(oneOf(sectionOutcomes, { description: "How the section ended." })),
  reason: text(63, "A word of the closed list: docs/errors.md."),
  msg: text(1024, "The same for people."),
  next: Type.Optional(
    Type.Object({
      action: text(512, "The action that is due."),
      actor: text(63, "The person or program that takes it."),
      by: Type.Optional(text(63, "By when, RFC 3339.")),
    }),
  ),
  data: Type.Optional(mapOf(Type.String({ maxLength: 1024 }), { description: "Details, at most 1 KiB." })),
  refs: Type.Optional(
    atomicList(
      Type.Object({
        kind: text(63, "Kind of an object."),
        namespace: Type.Optional(text(253, "Its namespace.")),
        name: text(253, "Its name."),
        uid: Type.Optional(text(63, "Its uid.")),
      }),
      { maxItems: 16 },
    ),
  ),
  via: oneOf(["told", "seen"], {
    description: "told: reported by the process that did it; seen: derived by an observer.",
  }),
});

export const journalLine = () =>
  Type.Object({
    v: Type.Integer({ minimum: 1, description: "Version of this form." }),
    book: text(260, "Book that the line is for: node/worker-0, pool/worker, build/NAME, cluster."),
    chapter: text(63, "Chapter of it."),
    run: Type.Optional(text(253, "Which instance of the chapter: a target's name or a uid.")),
    ...lineFields(),
  });
/** One line of a journal: a line of JSON on disk, an item of a MachineStateJournal in the API. */
export type JournalLine = Static<ReturnType<typeof journalLine>>;
