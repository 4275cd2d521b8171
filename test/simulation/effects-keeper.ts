import type { Node } from "../../src/api/foreign/kubernetes.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import type { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { annotations, machineConfigNodeConditions as phases } from "../../src/api/names.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { foldBook } from "../../src/core/books/fold-book.ts";
import type { HostEffect } from "../support/hosts/memory-host.ts";

/** What happened to a machine, by its own host, or to its Node, by the API server. */
export type EffectKind =
  | HostEffect["kind"]
  | "given"
  | "cordoned"
  | "drained"
  | "uncordoned"
  | "reported"
  | "lostPower"
  | "killed";

interface Effect {
  /** Milliseconds since the epoch, by the cluster's clock. */
  readonly at: number;
  readonly kind: EffectKind;
  /** The path, unit, image or configuration. */
  readonly what: string;
}

/** Times in chapters and conditions are whole seconds. */
const secondMs = 1000;
/** A daemon that was killed is back within this time. */
const restartMs = 10_000;

/** Sections of an update, and what must have happened when one of them succeeded. */
const effectOfSection: Readonly<Record<string, EffectKind | undefined>> = {
  Requested: "given",
  "Executed/ImagePulled": "fetched",
  "Executed/Cordoned": "cordoned",
  "Executed/Drained": "drained",
  "Executed/OS": "staged",
  "Executed/Files": "file",
  "PostAction/Rebooted": "booted",
  "PostAction/Service": "unit",
  "Complete/Uncordoned": "uncordoned",
  Updated: "reported",
};

/** Phases of a MachineConfigNode, and what must have happened when one of them succeeded. */
const effectOfPhase: Readonly<Record<string, EffectKind | undefined>> = {
  [phases.imagePulledFromRegistry]: "fetched",
  [phases.cordoned]: "cordoned",
  [phases.drained]: "drained",
  [phases.appliedOSImage]: "staged",
  [phases.appliedFiles]: "file",
  [phases.rebootedNode]: "booted",
  [phases.updatePostActionComplete]: "unit",
  [phases.uncordoned]: "uncordoned",
};

/** What a daemon does to its host, and the sections of its journal in which it does that. */
const sectionsOfEffect: Partial<Readonly<Record<EffectKind, readonly string[]>>> = {
  // A machine that goes back writes what it had.
  file: ["Executed/Files", "Decided"],
  staged: ["Executed/OS", "Decided"],
  unit: ["PostAction/Service", "Decided"],
  asksForBoot: ["PostAction/Rebooted"],
};

/** What happens to a Node, and the sections that tell it, whoever writes them: controllers may be killed before they do. */
const sectionsOfNode: Partial<Readonly<Record<EffectKind, readonly string[]>>> = {
  given: ["Requested"],
  cordoned: ["Executed/Cordoned"],
  drained: ["Executed/Drained"],
  uncordoned: ["Complete/Uncordoned"],
  // A newer target may come between the report and the end.
  reported: ["Updated", "Complete/Uncordoned"],
};

/** Of a cordon and its end: a daemon asked for it. */
const asked = "asked for";

const has = (node: Node | undefined, key: string) => node?.metadata.annotations?.[key] ?? "";

/**
 * 26: holds what is said to have happened to machines against what their hosts and the API server did, both ways: what
 * a chapter or a phase says that succeeded has its effect, and what a daemon did to its machine has its line.
 */
export class EffectsKeeper {
  readonly #now: () => number;
  readonly #violated: (what: string) => void;
  readonly #effects = new Map<string, Effect[]>();
  /** Machine → when its MachineConfigNode began to speak of its last run. */
  readonly #runSince = new Map<string, number>();
  readonly #unheard: number[] = [];
  /** Successes are held against effects, and effects against lines. */
  readonly #checks: { successes: number; effects: number };

  constructor(now: () => number, violated: (what: string) => void, checks: { successes: number; effects: number }) {
    this.#now = now;
    this.#violated = violated;
    this.#checks = checks;
  }

  happened(machine: string, kind: EffectKind, what: string): void {
    // The files of people's configurations: all else is the daemon's own.
    if (kind === "file" && !what.startsWith("/etc/test/")) return;
    const effects = this.#effects.get(machine);
    const effect = { at: this.#now(), kind, what };
    if (effects === undefined) this.#effects.set(machine, [effect]);
    else effects.push(effect);
  }

  /** A controller was killed, or lost its lease: it may not have told what it did. */
  controllerUnheard(): void {
    this.#unheard.push(this.#now());
  }

  /** @param runningPods pods on the node that a drain has to remove. */
  nodeChanged(before: Node | undefined, after: Node, runningPods: number): void {
    const { name } = after.metadata;
    const became = (key: string) => (has(before, key) === has(after, key) ? "" : has(after, key));
    const given = became(annotations.desiredConfig);
    if (
      given !== "" ||
      (before !== undefined && has(before, annotations.desiredImage) !== has(after, annotations.desiredImage))
    )
      this.happened(name, "given", has(after, annotations.desiredConfig));
    // People take machines out of service as well, and put them back.
    const wanted = has(after, annotations.desiredDrain);
    const isOpen = has(before, annotations.lastAppliedDrain) !== wanted;
    if (before?.spec?.unschedulable !== true && after.spec?.unschedulable === true)
      this.happened(name, "cordoned", isOpen && wanted.startsWith("drain-") ? asked : "");
    if (before?.spec?.unschedulable === true && after.spec?.unschedulable !== true)
      this.happened(name, "uncordoned", isOpen && wanted.startsWith("uncordon-") ? asked : "");
    if (became(annotations.lastAppliedDrain).startsWith("drain-")) {
      if (runningPods === 0) this.happened(name, "drained", "");
      else this.#violated(`${name} counts as drained with ${runningPods} pods on it`);
    }
    const reported = became(annotations.currentConfig);
    if (reported !== "") this.happened(name, "reported", reported);
  }

  /** A version of a MachineConfigNode: at the end of a run each phase says what became of it. */
  machineConfigNodeChanged(before: MachineConfigNode | undefined, after: MachineConfigNode): void {
    const { name } = after.metadata;
    const updated = (of: MachineConfigNode | undefined) => conditionOf(of?.status?.conditions, phases.updated)?.status;
    if (updated(after) !== "True") {
      if (updated(before) === "True" || !this.#runSince.has(name)) this.#runSince.set(name, this.#now());
      return;
    }
    if (updated(before) === "True") return;
    const since = this.#runSince.get(name);
    if (since === undefined) return;
    for (const { type, message } of after.status?.conditions ?? []) {
      // A reboot is what many updates do after they are written.
      const isReboot = type === phases.updatePostActionComplete && message.endsWith(": Rebooted");
      const kind = isReboot ? "booted" : effectOfPhase[type];
      if (kind === undefined || !message.startsWith("last: Succeeded")) continue;
      this.#checks.successes += 1;
      // The run began before its first report.
      if (!this.#has(name, kind, since - mostReportMs, this.#now()))
        this.#violated(
          `MachineConfigNode ${name} says of ${type}: "${message}", and nothing of the kind has happened since ${since}: ${this.#tellEffects(name, since - mostReportMs)}`,
        );
    }
  }

  /** When everything is quiet: chapters against effects, and effects against lines. */
  checkEnd(machine: string, lines: readonly JournalLine[]): void {
    const book = `node/${machine}`;
    const own = lines.filter((line) => line.book === book);
    for (const { chapter, run, sections, startedAt } of foldBook(book, own, { now: this.#now() })) {
      if (chapter !== "Update") continue;
      for (const { path, outcome, reason, endedAt } of sections) {
        const kind = effectOfSection[path];
        if (kind === undefined || outcome !== "Succeeded") continue;
        this.#checks.successes += 1;
        const [from, to] = [Date.parse(startedAt), endedAt === undefined ? this.#now() : Date.parse(endedAt)];
        // Its Node may have been given that before, and have said so ever since; a daemon that was killed tells what it
        // did when it comes back.
        const since = kind === "given" || kind === "reported" ? 0 : from - restartMs;
        const what = kind === "given" || kind === "reported" ? run : undefined;
        if (!this.#has(machine, kind, since, to + lagOf(kind), what))
          this.#violated(
            `${machine}: ${path} of the update to ${run} has succeeded (${reason ?? ""}, ${startedAt} to ${endedAt ?? ""}), and nothing of the kind has happened: ${this.#tellEffects(machine, from - secondMs)}`,
          );
      }
    }
    this.#checkLines(machine, own);
    this.#checkNodeLines(machine, own);
  }

  /**
   * What happened to a Node is told by some line: of whoever did it, or of an observer. A controller that is killed, or
   * loses its lease, soon after may not have told it.
   */
  #checkNodeLines(machine: string, lines: readonly JournalLine[]): void {
    for (const { at, kind, what } of this.#effects.get(machine) ?? []) {
      const sections = sectionsOfNode[kind];
      if (sections === undefined || ((kind === "cordoned" || kind === "uncordoned") && what !== asked)) continue;
      this.#checks.effects += 1;
      const run = kind === "given" || kind === "reported" ? what : undefined;
      const isTold = lines.some(
        (line) =>
          ((sections.includes(line.path) && (run === undefined || line.run === run)) ||
            // A target that is taken back ends the update that was to reach it.
            (kind === "given" && line.path === "Updated" && line.reason === "Superseded") ||
            // A machine that went back reports what it had, and its book says that it went back.
            (kind === "reported" && line.chapter === "Rollback" && line.path === "Done")) &&
          Math.abs(line.at - at) <= (kind === "reported" ? lagOf(kind) : mostReportMs),
      );
      const isLost = this.#unheard.some((end) => end >= at && end - at <= unsentMs);
      if (!isTold && !isLost)
        this.#violated(
          `${machine}: ${kind} ${what} at ${new Date(at).toISOString()} is told by no line of ${sections.join(" and ")}: ${lines
            .filter(({ path }) => sections.includes(path))
            .map((line) => `${line.run ?? ""} ${line.mark} ${line.reason} ${(line.at - at) / 1000} s`)
            .join(", ")}`,
        );
    }
  }

  #checkLines(machine: string, lines: readonly JournalLine[]): void {
    const told = lines.filter(({ writer }) => writer.component === "daemon");
    for (const { at, kind, what } of this.#effects.get(machine) ?? []) {
      const paths = sectionsOfEffect[kind];
      if (paths === undefined) continue;
      this.#checks.effects += 1;
      const isTold = spansOf(told, paths).some(({ from, to }) => from - momentMs <= at && at <= to + momentMs);
      if (!isTold)
        this.#violated(
          `${machine}: ${kind} ${what} at ${new Date(at).toISOString()} is in no section of its journal: ${told
            .filter((line) => Math.abs(line.at - at) < 20_000)
            .map((line) => `${line.chapter} ${line.path} ${line.mark} ${line.reason} ${(line.at - at) / 1000} s`)
            .join(", ")}`,
        );
    }
  }

  #has(machine: string, kind: EffectKind, from: number, to: number, what?: string): boolean {
    const effects = this.#effects.get(machine) ?? [];
    // A machine may be out of service from an update before this one.
    const wasCordoned = effects.findLast(
      ({ kind: is, at }) => at <= from && (is === "cordoned" || is === "uncordoned"),
    );
    if (kind === "cordoned" && wasCordoned?.kind === kind) return true;
    return effects.some(
      (each) => each.kind === kind && each.at >= from && each.at <= to && (what === undefined || each.what === what),
    );
  }

  #tellEffects(machine: string, from: number): string {
    return (this.#effects.get(machine) ?? [])
      .filter(({ at }) => at >= from - 60_000)
      .map(({ at, kind, what }) => `${kind} ${what.slice(0, 24)} ${Math.round((at - from) / 100) / 10} s`)
      .slice(0, 40)
      .join(", ");
  }
}

/** Work on a simulated host takes no time: a line and the effect that it tells of have one time, but for rounding. */
const momentMs = 10;

/** When sections with these paths were open, by the lines of one writer. */
function spansOf(
  lines: readonly JournalLine[],
  paths: readonly string[],
): readonly { readonly from: number; readonly to: number }[] {
  const spans: { from: number; to: number }[] = [];
  // A way back stays open while another target is tried on it.
  const open = new Map<string, number>();
  for (const { chapter, path, mark, at } of lines) {
    const endsWayBack = chapter === "Rollback" && path === "Done" && paths.includes("Decided");
    if (!paths.includes(path) && !endsWayBack) continue;
    // After a failure it is tried again, which only the file on the machine tells.
    if (mark === "end" || mark === "skip") {
      spans.push({ from: open.get(chapter) ?? at, to: at });
      open.delete(chapter);
    } else if (!open.has(chapter)) open.set(chapter, at);
  }
  return [...spans, ...[...open.values()].map((from) => ({ from, to: Number.POSITIVE_INFINITY }))];
}

/**
 * A line of what happened to a Node is in the journal after this time, at most, if its controller lives: an answer that
 * is lost is missed after ten seconds, and lines are sent in portions, and again where they do not arrive.
 */
const unsentMs = 30_000;

/** A run is reported this much after it began, at most: messages are lost and sent again. */
const mostReportMs = 60_000;

/** A daemon says that it has its target before its Node can: reports are sent until they arrive. */
const lagOf = (kind: EffectKind) => (kind === "reported" ? 10 * mostReportMs : secondMs);
