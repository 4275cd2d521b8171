import type { JournalLine } from "../api/books/journal-line.ts";
import type { Clock } from "../ports/clock.ts";
import type { Scribe } from "../ports/scribe.ts";
import type { NodeStory } from "./node-story.ts";
import { reportedMemory } from "./reported-memory.ts";
import { type Pen, openSections, updateSections } from "./update-sections.ts";

/** @param past lines of this machine's book that were written before, in their order. */
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
  const memory = reportedMemory(past);
  const pen: Pen = { say: (line) => scribe.line({ book, ...line }), clock, memory };
  const sections = updateSections(pen);
  return {
    get run() {
      return memory.run?.name;
    },
    ...sections,
    booted(boot, message) {
      memory.boot = boot;
      endReboot(boot, message, sections, pen);
      endFirstBoot(message, pen);
    },
    ...troubles(pen),
    wentBack(target, message, reason) {
      sections.finish("WentBack", message);
      if (memory.goingBackFrom === target) return;
      memory.goingBackFrom = target;
      pen.say({ chapter: "Rollback", run: target, path: "Decided", mark: "begin", level: "boundary", reason, message });
    },
    isBack(message) {
      const run = memory.goingBackFrom;
      if (run === undefined) return;
      memory.goingBackFrom = undefined;
      pen.say({
        chapter: "Rollback",
        run,
        path: "Done",
        mark: "end",
        level: "boundary",
        reason: "WentBack",
        outcome: "RolledBack",
        message,
      });
    },
    ...joining(pen),
  };
}

/** The machine was booted: what ends by that, ends. */
function endReboot(boot: string, message: string, sections: Pick<NodeStory, "end">, { memory, clock }: Pen): void {
  const { run } = memory;
  const reboot = run?.sections.get("PostAction/Rebooted");
  if (run === undefined || reboot?.state !== "open" || reboot.boot === boot) return;
  const upAfterMs = Math.max(0, clock.now() - reboot.at);
  sections.end("PostAction/Rebooted", "Rebooted", message, { data: { boot, upAfterMs } });
  // That was no accident: the machine was to go down here.
  if (openSections(memory).length === 0) run.isInherited = false;
}

/** The daemon is up for the first time on a machine that has just joined. */
function endFirstBoot(message: string, { memory: { firstBoot }, say }: Pen): void {
  if (!firstBoot.isOpen || firstBoot.told.has("DaemonUp")) return;
  const here = { chapter: "Firstboot", mark: "end", level: "boundary" } as const;
  if (firstBoot.told.has("Reboot")) say({ ...here, path: "Reboot", reason: "Rebooted", message });
  say({ ...here, path: "Registered", reason: "Registered", message: "its Node is there" });
  say({ ...here, path: "DaemonUp", reason: "Up", message: "the daemon looks after the machine" });
  firstBoot.told.add("DaemonUp");
}

/** What is wrong with the machine, and that it is over. */
function troubles({ memory, say }: Pen): Pick<NodeStory, "degraded" | "recovered" | "drifted" | "driftEnded"> {
  return {
    degraded(reason, message) {
      const known = `${reason}: ${message}`;
      if (memory.trouble === known) return;
      memory.trouble = known;
      say({ chapter: "Degraded", path: "Failed", mark: "fail", level: "boundary", reason, message });
    },
    recovered(message) {
      if (memory.trouble === undefined) return;
      memory.trouble = undefined;
      say({ chapter: "Degraded", path: "Ended", mark: "end", level: "boundary", reason: "Recovered", message });
    },
    drifted(message) {
      if (memory.drift === message) return;
      const mark = memory.drift === undefined ? "begin" : "note";
      say({ chapter: "Drift", path: "Detected", mark, level: "boundary", reason: "ConfigDrift", message });
      memory.drift = message;
    },
    driftEnded(reason, message) {
      if (memory.drift === undefined) return;
      memory.drift = undefined;
      say({ chapter: "Drift", path: "Ended", mark: "end", level: "boundary", reason, message });
    },
  };
}

/** How the machine came to the cluster. */
function joining({ memory: { firstBoot, join }, say }: Pen): Pick<NodeStory, "adopted" | "validated"> {
  const here = { mark: "end", level: "boundary" } as const;
  return {
    adopted(config, from) {
      if (join.isAdopted && !join.isOver) return;
      join.isAdopted = true;
      join.isOver = false;
      say({
        ...here,
        chapter: "Join",
        path: "Adopted",
        reason: "Adopted",
        message: `the machine has ${config}`,
        data: { from },
      });
      if (!firstBoot.isOpen || firstBoot.told.has("AnnotationsInitialised")) return;
      firstBoot.told.add("AnnotationsInitialised");
      const message = `the node says that it has ${config}`;
      say({ ...here, chapter: "Firstboot", path: "AnnotationsInitialised", reason: "Applied", message });
    },
    validated(message, isNew) {
      if (firstBoot.isOpen) {
        firstBoot.isOpen = false;
        say({ ...here, chapter: "Firstboot", path: "Validated", reason: "Validated", message });
      }
      if (join.isOver || !(join.isAdopted || isNew)) return;
      join.isOver = true;
      say({ ...here, chapter: "Join", path: "Validated", reason: "Validated", message });
    },
  };
}
