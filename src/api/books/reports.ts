/**
 * What becomes of a reported reason besides its journal line: the Event that `kubectl describe` shows. Together with
 * `stories.ts` this table is closed: `report` takes nothing that is in neither, and a reason with an Event cannot be
 * reported without the object that the Event is about.
 */
import type { KubeObject } from "../schema/object.ts";
import type { BookKind, StoryLine, StoryReason } from "./stories.ts";

export interface EventForm {
  readonly type: "Normal" | "Warning";
  /** CamelCase; users and scripts see it, so that it changes no more. */
  readonly reason: string;
  /** Only lines in books of this kind become an Event: the same reason is told of a pool and of its build. */
  readonly in?: BookKind;
}

const normal = <const R extends string>(reason: R) => ({ type: "Normal", reason }) as const;
const warning = <const R extends string>(reason: R) => ({ type: "Warning", reason }) as const;

/** Reasons of journal lines → the Event that says the same. */
export const eventForms = {
  TargetQuarantined: warning("TargetQuarantined"),
  Canary: normal("CanaryStarted"),
  Proven: { ...normal("CanaryPassed"), in: "pool" },
  ProofFailed: { ...warning("CanaryFailed"), in: "pool" },
  RenderedConfigGenerated: normal("RenderedConfigGenerated"),
  RenderedConfigChanged: normal("RenderedConfigChanged"),
} as const satisfies Partial<Readonly<Record<StoryReason, EventForm>>>;

/** What happens and belongs to no chapter: an Event and a log line, and no journal line. */
export const notices = {
  SelectingAll: "Warning",
  SeveralPools: "Warning",
  Updating: "Normal",
  Completed: "Normal",
  SetDesiredConfig: "Normal",
  DeferringOperatorNodeUpdate: "Normal",
  PoolAnnotationIgnored: "Warning",
  RenderedConfigsRemoved: "Normal",
  RenderedConfigRestored: "Warning",
  JoinOverdue: "Warning",
} as const satisfies Readonly<Record<string, EventForm["type"]>>;
export type Notice = keyof typeof notices;

/** What an Event can be about. */
export type EventSubject = Pick<KubeObject, "apiVersion" | "kind" | "metadata">;

type Formed = typeof eventForms;
type KindOf<L extends StoryLine> = L["book"] extends `${infer K extends BookKind}/${string}` ? K : "cluster";
type AsksForSubject<L extends StoryLine> = L["reason"] extends keyof Formed
  ? Formed[L["reason"]] extends { readonly in: infer K }
    ? KindOf<L> extends K
      ? true
      : false
    : true
  : false;

/** A journal line with the object that its Event is about, where its reason has one. */
export type ReportedLine = StoryLine extends infer L
  ? L extends StoryLine
    ? AsksForSubject<L> extends true
      ? L & { readonly about: EventSubject }
      : L & { readonly about?: EventSubject }
    : never
  : never;

export interface ReportedNotice {
  readonly about: EventSubject;
  readonly notice: Notice;
  /** In place of the type that the table gives. */
  readonly type?: EventForm["type"];
  /** One sentence: what happened. */
  readonly message: string;
}

/** One happening, said once; the runtime makes of it all that is made of such a thing. */
export type Happening = ReportedLine | ReportedNotice;
