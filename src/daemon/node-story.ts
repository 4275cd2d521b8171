import type { JournalLine } from "../api/books/journal-line.ts";
import { type Stories, type StoryLineIn, type StoryOutcome, stories } from "../api/books/stories.ts";
import type { Clock } from "../ports/clock.ts";
import type { Scribe } from "../ports/scribe.ts";

type Update = Stories["node"]["Update"];
export type UpdateSection = keyof Update;
type Told = Partial<Pick<StoryLineIn<"node">, "data" | "next">>;

/** What has been told of one section of the update that is under way. */
interface Section {
  readonly state: "open" | "ended" | "failed";
  /** Boot in which it was begun. */
  readonly boot: string;
  /** The last failure that was told of it. */
  readonly failure?: string;
  /** When it was begun, in milliseconds since the epoch. */
  readonly at: number;
}

interface Run {
  readonly name: string;
  readonly sections: Map<string, Section>;
  readonly began: number;
  /** Told by a daemon before this one. */
  isInherited: boolean;
}

/**
 * What the daemon tells of its machine, each thing once however often it looks. It knows what was told before from the
 * lines that lie on the machine, so that a daemon that comes back goes on with the story and does not begin it again.
 */
export interface NodeStory {
  /** The target of the update that is under way, as far as was told. */
  readonly run: string | undefined;
  /**
   * A target was seen that the machine does not have yet: the story of its update begins, where it has not begun
   * before.
   */
  seen(target: string, from: string | undefined): void;
  /**
   * Called before something is done for it: if a daemon before this one was in the middle of it, that is told first.
   * `isOver`: everything is done already.
   */
  goOn(target: string, how?: { readonly isOver: boolean }): void;
  begin<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  note<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  end<P extends UpdateSection>(path: P, reason: Update[P][number], message: string, more?: Told): void;
  skip<P extends UpdateSection>(path: P, reason: Update[P][number], message: string): void;
  fail<P extends UpdateSection>(path: P, reason: Update[P][number], message: string): void;
  isOpen(path: UpdateSection): boolean;
  /** Milliseconds since a section was begun; `undefined` where that is not known. */
  since(path: UpdateSection): number | undefined;
  /** The update is over. */
  finish(outcome: "Succeeded" | "Superseded" | "WentBack", message: string): void;
  /** The machine was booted: what ends by that, ends. */
  booted(boot: string, message: string): void;
  degraded(reason: Stories["node"]["Degraded"]["Failed"][number], message: string): void;
  recovered(message: string): void;
  drifted(message: string): void;
  driftEnded(reason: Stories["node"]["Drift"]["Ended"][number], message: string): void;
  wentBack(target: string, message: string, reason: Stories["node"]["Rollback"]["Decided"][number]): void;
  isBack(message: string): void;
  adopted(config: string, from: string): void;
  /** The machine has what it should have: its first boot and its joining are over. `isNew`: it had nothing before. */
  validated(message: string, isNew: boolean): void;
}

/** Begun, maybe again: what it failed of last stays known, so that the same failure is not told again. */
const begun = (before: Section | undefined, boot: string, at: number): Section => ({
  state: "open",
  boot,
  at,
  ...(before?.failure === undefined ? {} : { failure: before.failure }),
});

/** Sections that a daemon can be interrupted in. */
const interruptible = new Set<string>(
  Object.entries(stories.node.Update).flatMap(([path, reasons]) =>
    (reasons as readonly string[]).includes("Interrupted") ? [path] : [],
  ),
);

/** @param past lines of this machine's book that were told before, in their order. */
export function nodeStory({
  scribe,
  clock,
  nodeName,
  past,
}: {
  readonly scribe: Scribe;
  readonly clock: Pick<Clock, "now">;
  readonly nodeName: string;
  readonly past: readonly JournalLine[];
}): NodeStory {
  const book = `node/${nodeName}` as const;
  let boot = "";
  let run: Run | undefined;
  let trouble: string | undefined;
  let drift: string | undefined;
  let isGoingBack: string | undefined;
  const firstBoot = { isOpen: false, told: new Set<string>() };
  const join = { isAdopted: false, isOver: false };

  for (const line of past) remember(line);

  function remember({
    chapter,
    path,
    mark,
    run: name = "",
    msg,
    at,
    boot: of,
    reason,
  }: Pick<JournalLine, "chapter" | "path" | "mark" | "run" | "msg" | "at" | "boot" | "reason">): void {
    switch (chapter) {
      case "Update":
        if (path === "Updated" && mark !== "retry") {
          run = undefined;
          return;
        }
        if (run?.name !== name) run = { name, sections: new Map(), began: at, isInherited: true };
        if (mark === "begin") run.sections.set(path, begun(run.sections.get(path), of, at));
        else if (mark === "end" || mark === "skip")
          run.sections.set(path, { ...(run.sections.get(path) ?? { boot: of, at }), state: "ended" });
        else if (mark === "fail")
          run.sections.set(path, { ...(run.sections.get(path) ?? { boot: of, at }), state: "failed", failure: msg });
        else if (mark === "retry") run.sections.delete(path);
        return;
      case "Degraded":
        trouble = path === "Ended" ? undefined : `${reason}: ${msg}`;
        return;
      case "Drift":
        drift = path === "Ended" ? undefined : msg;
        return;
      case "Rollback":
        isGoingBack = path === "Done" ? undefined : name;
        return;
      case "Firstboot":
        // A first boot that was given up can be tried again.
        firstBoot.isOpen = path !== "Validated" || mark !== "end";
        firstBoot.told.add(path);
        return;
      case "Join":
        if (path === "Adopted") join.isAdopted = true;
        if (path === "Validated") join.isOver = true;
        return;
      default:
    }
  }

  const say = (line: StoryLineIn<"node">) => scribe.line({ book, ...line });

  function tell(
    path: UpdateSection,
    mark: StoryLineIn<"node">["mark"],
    reason: string,
    message: string,
    more: Told & { readonly level?: "progress"; readonly outcome?: StoryOutcome } = {},
  ): void {
    if (run === undefined) return;
    // The callers' types tie the reason to its section; what ties both to the union of all lines is this one place.
    say({
      chapter: "Update",
      run: run.name,
      path,
      mark,
      level: "boundary",
      reason,
      message,
      ...more,
    } as StoryLineIn<"node">);
  }

  const story: NodeStory = {
    get run() {
      return run?.name;
    },
    seen(target, from) {
      if (run?.name === target) return;
      run = { name: target, sections: new Map(), began: clock.now(), isInherited: false };
      tell("Requested", "end", "TargetSeen", `the daemon has seen its target ${target}`, {
        data: { to: target, ...(from === undefined ? {} : { from }) },
      });
      run.sections.set("Requested", { state: "ended", boot, at: clock.now() });
      story.begin("Prepared", "Checking", "the machine is compared with it");
    },
    goOn(target, { isOver } = { isOver: false }) {
      if (run?.name !== target || !run.isInherited) return;
      run.isInherited = false;
      if (isOver && run.sections.get("Resumed")?.state === "ended") return;
      const open = [...run.sections].findLast(([path, { state }]) => state === "open" && interruptible.has(path))?.[0];
      const isBehind = run.sections.has("PostAction/Rebooted") || run.sections.has("PostAction/Service");
      const path = (isOver ? "Resumed" : (open ?? (isBehind ? "Resumed" : "Prepared"))) as UpdateSection;
      tell(path, "retry", "Interrupted", "the daemon ended here and goes on", { outcome: "Interrupted" });
      run.sections.delete(path);
      if (path === "Prepared") story.begin("Prepared", "Checking", "the machine is compared with its target again");
    },
    begin(path, reason, message, more) {
      const section = run?.sections.get(path);
      if (run === undefined || section?.state === "open") return;
      tell(path, "begin", reason, message, { ...more, ...(section?.state === "failed" ? { level: "progress" } : {}) });
      run.sections.set(path, begun(section, boot, clock.now()));
    },
    note(path, reason, message, more) {
      tell(path, "note", reason, message, more);
    },
    end(path, reason, message, more) {
      const section = run?.sections.get(path);
      if (run === undefined || section?.state === "ended") return;
      tell(path, "end", reason, message, more);
      run.sections.set(path, { state: "ended", boot, at: section?.at ?? clock.now() });
    },
    skip(path, reason, message) {
      const section = run?.sections.get(path);
      if (run === undefined || section !== undefined) return;
      tell(path, "skip", reason, message, { outcome: "NotRequired" });
      run.sections.set(path, { state: "ended", boot, at: clock.now() });
    },
    fail(path, reason, message) {
      const section = run?.sections.get(path);
      if (run === undefined || (section?.state === "failed" && section.failure === message)) return;
      // The same failure again is for whoever reads the file on the machine.
      tell(path, "fail", reason, message, section?.failure === message ? { level: "progress" } : {});
      run.sections.set(path, { state: "failed", boot, at: section?.at ?? clock.now(), failure: message });
    },
    isOpen: (path) => run?.sections.get(path)?.state === "open",
    since(path) {
      const at = run?.sections.get(path)?.at;
      return at === undefined ? undefined : Math.max(0, clock.now() - at);
    },
    finish(how, message) {
      if (run === undefined) return;
      const outcome = how === "WentBack" ? "RolledBack" : how;
      tell("Updated", how === "WentBack" ? "fail" : "end", how, message, {
        outcome,
        data: { totalMs: Math.max(0, clock.now() - run.began) },
      });
      run = undefined;
    },
    booted(now, message) {
      boot = now;
      const reboot = run?.sections.get("PostAction/Rebooted");
      if (run !== undefined && reboot?.state === "open" && reboot.boot !== now) {
        const downMs = Math.max(0, clock.now() - reboot.at);
        story.end("PostAction/Rebooted", "Rebooted", message, { data: { boot: now, upAfterMs: downMs } });
        // That was no accident: the machine was to go down here.
        if (![...run.sections].some(([path, { state }]) => state === "open" && interruptible.has(path)))
          run.isInherited = false;
      }
      if (!firstBoot.isOpen || firstBoot.told.has("DaemonUp")) return;
      if (firstBoot.told.has("Reboot"))
        say({ chapter: "Firstboot", path: "Reboot", mark: "end", level: "boundary", reason: "Rebooted", message });
      say({
        chapter: "Firstboot",
        path: "Registered",
        mark: "end",
        level: "boundary",
        reason: "Registered",
        message: "its Node is there",
      });
      say({
        chapter: "Firstboot",
        path: "DaemonUp",
        mark: "end",
        level: "boundary",
        reason: "Up",
        message: "the daemon looks after the machine",
      });
      firstBoot.told.add("DaemonUp");
    },
    degraded(reason, message) {
      const known = `${reason}: ${message}`;
      if (trouble === known) return;
      trouble = known;
      say({ chapter: "Degraded", path: "Failed", mark: "fail", level: "boundary", reason, message });
    },
    recovered(message) {
      if (trouble === undefined) return;
      trouble = undefined;
      say({ chapter: "Degraded", path: "Ended", mark: "end", level: "boundary", reason: "Recovered", message });
    },
    drifted(message) {
      if (drift === message) return;
      say({
        chapter: "Drift",
        path: "Detected",
        mark: drift === undefined ? "begin" : "note",
        level: "boundary",
        reason: "ConfigDrift",
        message,
      });
      drift = message;
    },
    driftEnded(reason, message) {
      if (drift === undefined) return;
      drift = undefined;
      say({ chapter: "Drift", path: "Ended", mark: "end", level: "boundary", reason, message });
    },
    wentBack(target, message, reason) {
      story.finish("WentBack", message);
      if (isGoingBack === target) return;
      isGoingBack = target;
      say({ chapter: "Rollback", run: target, path: "Decided", mark: "begin", level: "boundary", reason, message });
    },
    isBack(message) {
      if (isGoingBack === undefined) return;
      say({
        chapter: "Rollback",
        run: isGoingBack,
        path: "Done",
        mark: "end",
        level: "boundary",
        reason: "WentBack",
        outcome: "RolledBack",
        message,
      });
      isGoingBack = undefined;
    },
    adopted(config, from) {
      if (join.isAdopted && !join.isOver) return;
      join.isAdopted = true;
      join.isOver = false;
      say({
        chapter: "Join",
        path: "Adopted",
        mark: "end",
        level: "boundary",
        reason: "Adopted",
        message: `the machine has ${config}`,
        data: { from },
      });
      if (firstBoot.isOpen && !firstBoot.told.has("AnnotationsInitialised")) {
        firstBoot.told.add("AnnotationsInitialised");
        say({
          chapter: "Firstboot",
          path: "AnnotationsInitialised",
          mark: "end",
          level: "boundary",
          reason: "Applied",
          message: `the node says that it has ${config}`,
        });
      }
    },
    validated(message, isNew) {
      if (firstBoot.isOpen) {
        firstBoot.isOpen = false;
        say({ chapter: "Firstboot", path: "Validated", mark: "end", level: "boundary", reason: "Validated", message });
      }
      if (join.isOver || !(join.isAdopted || isNew)) return;
      join.isOver = true;
      say({ chapter: "Join", path: "Validated", mark: "end", level: "boundary", reason: "Validated", message });
    },
  };
  return story;
}
